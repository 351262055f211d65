"""Sessions: where jobs run (this process, or Ray), how they are submitted, watched and cancelled,
and what configures them."""
