"""The RPC layer: endpoints with a mailbox and a thread each, typed gateways, and services that
carry calls."""
