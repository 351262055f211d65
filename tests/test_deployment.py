"""What ``docs/deploy`` and its pages say: fields that KubeRay, Kubernetes and Ray have, options and
commands that flinkpy has."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from flinkpy import __version__
from flinkpy.cluster.option_sources import load_settings, parse_definitions, read_environment
from flinkpy.core.options.engine import ON_HEAD_NODE
from flinkpy.core.options.high_availability import HighAvailability
from flinkpy.core.options.rest import REST_BIND_ADDRESS
from flinkpy.core.options.schema import SCHEMA, read
from tests.test_readme import assert_is_there

pytestmark = pytest.mark.finding("gaps G6")

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "docs" / "deploy"
PAGES = [ROOT / "docs" / "kubernetes.md", ROOT / "docs" / "production-checklist.md"]

# -- the fields that the manifests use, as the API references of Kubernetes and KubeRay (ray.io/v1)
# have them ------------

TEXTS = {str: str}  # a mapping with any keys
REFERENCE = {"name": str, "key": str}
ENVIRONMENT = [{"name": str, "value": str, "valueFrom": {"secretKeyRef": REFERENCE}}]
EXEC = {"exec": {"command": [str]}}
PROBE = {
    **EXEC,
    "initialDelaySeconds": int,
    "periodSeconds": int,
    "timeoutSeconds": int,
    "failureThreshold": int,
}
AMOUNTS = {"cpu": str, "memory": str}
CONTAINER = {
    "name": str,
    "image": str,
    "env": ENVIRONMENT,
    "ports": [{"name": str, "containerPort": int}],
    "resources": {"requests": AMOUNTS, "limits": AMOUNTS},
    "livenessProbe": PROBE,
    "readinessProbe": PROBE,
    "lifecycle": {"preStop": EXEC},
    "volumeMounts": [{"name": str, "mountPath": str}],
}
POD = {
    "spec": {
        "terminationGracePeriodSeconds": int,
        "containers": [CONTAINER],
        "volumes": [{"name": str, "configMap": {"name": str}, "emptyDir": {"sizeLimit": str}}],
    }
}
CLUSTER = {
    "rayVersion": str,
    "enableInTreeAutoscaling": bool,
    "autoscalerOptions": {"upscalingMode": str, "idleTimeoutSeconds": int},
    "gcsFaultToleranceOptions": {
        "redisAddress": str,
        "redisPassword": {"value": str, "valueFrom": {"secretKeyRef": REFERENCE}},
    },
    "headGroupSpec": {"serviceType": str, "rayStartParams": TEXTS, "template": POD},
    "workerGroupSpecs": [
        {
            "groupName": str,
            "replicas": int,
            "minReplicas": int,
            "maxReplicas": int,
            "rayStartParams": TEXTS,
            "template": POD,
        }
    ],
}
HEAD = {"apiVersion": str, "kind": str, "metadata": {"name": str}}
KINDS: dict[tuple[str, str], dict[str, Any]] = {
    ("v1", "ConfigMap"): {**HEAD, "data": TEXTS},
    ("v1", "Service"): {
        **HEAD,
        "spec": {
            "type": str,
            "selector": TEXTS,
            "ports": [{"name": str, "port": int, "targetPort": int}],
        },
    },
    ("ray.io/v1", "RayCluster"): {**HEAD, "spec": CLUSTER},
    ("ray.io/v1", "RayJob"): {
        **HEAD,
        "spec": {
            "entrypoint": str,
            "submissionMode": str,
            "shutdownAfterJobFinishes": bool,
            "ttlSecondsAfterFinished": int,
            "backoffLimit": int,
            "rayClusterSpec": CLUSTER,
        },
    },
}
RAY_UP = {
    "cluster_name": str,
    "max_workers": int,
    "provider": {"type": str, "head_ip": str, "worker_ips": [str]},
    "auth": {"ssh_user": str, "ssh_private_key": str},
    "file_mounts": TEXTS,
    "setup_commands": [str],
    "head_start_ray_commands": [str],
    "worker_start_ray_commands": [str],
}


def faults(value: Any, shape: Any, at: str = "") -> Iterator[str]:
    """Where the value is not of this shape."""
    if isinstance(shape, type):
        if type(value) is not shape:
            yield f"{at}: {value!r} is no {shape.__name__}"
    elif isinstance(shape, list):
        if not isinstance(value, list):
            yield f"{at}: {value!r} is no list"
            return
        for number, each in enumerate(value):
            yield from faults(each, shape[0], f"{at}[{number}]")
    elif not isinstance(value, dict):
        yield f"{at}: {value!r} is no mapping"
    else:
        for key, each in value.items():
            if key not in shape and str not in shape:
                yield f"{at}.{key}: there is no such field"
            else:
                yield from faults(each, shape.get(key, shape.get(str)), f"{at}.{key}")


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


MANIFESTS = documents("raycluster.yaml") + documents("rayjob.yaml")


def kinds(kind: str) -> list[dict[str, Any]]:
    return [each for each in MANIFESTS if each["kind"] == kind]


CLUSTERS = [each["spec"] for each in kinds("RayCluster")] + [
    each["spec"]["rayClusterSpec"] for each in kinds("RayJob")
]


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda each: str(each["kind"]))
def test_a_manifest_has_the_fields_of_its_kind(manifest: dict[str, Any]) -> None:
    assert list(faults(manifest, KINDS[manifest["apiVersion"], manifest["kind"]])) == []


def test_the_file_for_ray_up_has_the_fields_of_the_cluster_launcher() -> None:
    [content] = documents("ray-up.yaml")
    assert list(faults(content, RAY_UP)) == []
    assert content["max_workers"] == len(content["provider"]["worker_ips"])


def test_the_shapes_tell_what_is_wrong() -> None:
    assert list(faults({"rayVersion": 2.4, "headGroup": {}}, CLUSTER)) == [
        ".rayVersion: 2.4 is no str",
        ".headGroup: there is no such field",
    ]


def pods(cluster: Mapping[str, Any]) -> list[dict[str, Any]]:
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    return [group["template"]["spec"] for group in groups]


@pytest.mark.parametrize("cluster", CLUSTERS, ids=["RayCluster", "RayJob"])
def test_pods_stop_in_time_find_their_volumes_and_ask_for_what_they_may_use(
    cluster: dict[str, Any],
) -> None:
    for pod in pods(cluster):
        volumes = {volume["name"] for volume in pod["volumes"]}
        for container in pod["containers"]:
            [grace] = re.findall(
                r"--grace-period (\d+)", container["lifecycle"]["preStop"]["exec"]["command"][-1]
            )
            assert 10 < int(grace) < pod["terminationGracePeriodSeconds"]
            assert {mount["name"] for mount in container["volumeMounts"]} == volumes
            assert container["resources"]["requests"] == container["resources"]["limits"]
    assert cluster["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"


def configuration() -> dict[str, Any]:
    [found] = [yaml.safe_load(each["data"]["flinkpy-conf.yaml"]) for each in kinds("ConfigMap")]
    return dict(found)


def test_the_configuration_is_one_that_flinkpy_reads(tmp_path: Path) -> None:
    [text] = [each["data"]["flinkpy-conf.yaml"] for each in kinds("ConfigMap")]
    (tmp_path / "flinkpy-conf.yaml").write_text(text)
    values = load_settings(conf=tmp_path, environ={})
    assert set(values) == set(configuration())
    for key in values:
        read(values, SCHEMA.get(key))
    assert HighAvailability.of(values, "nightly") == HighAvailability(
        "s3://bucket/flinkpy/ha", "flinkpy"
    )


def test_the_service_leads_to_the_jobmanagers_port_on_the_head() -> None:
    [service], values = kinds("Service"), configuration()
    [port] = service["spec"]["ports"]
    assert (read(values, REST_BIND_ADDRESS), read(values, ON_HEAD_NODE)) == ("0.0.0.0", True)
    assert port["targetPort"] == values["rest.port"]
    assert service["spec"]["selector"] == {
        "ray.io/cluster": kinds("RayCluster")[0]["metadata"]["name"],
        "ray.io/node-type": "head",
    }
    for cluster in CLUSTERS:
        [head] = cluster["headGroupSpec"]["template"]["spec"]["containers"]
        assert port["targetPort"] in [each["containerPort"] for each in head["ports"]]


def test_a_worker_fills_its_pod_and_scratch_is_on_its_volume() -> None:
    values = configuration()
    cpus = values["taskmanager.numberOfTaskSlots"] * values["taskmanager.ray.num-cpus-per-slot"]
    for cluster in CLUSTERS:
        for group in cluster["workerGroupSpecs"]:
            [container] = group["template"]["spec"]["containers"]
            assert int(container["resources"]["requests"]["cpu"]) == cpus
            mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
            assert {values["io.tmp.dirs"], "/etc/flinkpy"} <= mounts


def test_variables_are_options_and_name_the_folder_of_the_configuration() -> None:
    for cluster in CLUSTERS:
        for pod in pods(cluster):
            for container in pod["containers"]:
                names = {each["name"]: each.get("value", "a secret") for each in container["env"]}
                assert names.pop("FLINKPY_CONF_DIR") == "/etc/flinkpy"
                options = read_environment(
                    {name: value for name, value in names.items() if not name.startswith("RAY_")}
                )
                assert set(options) == {"rest.token"}


def test_image_ray_and_flinkpy_have_the_same_versions_everywhere() -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    [ray] = re.findall(r"^ARG RAY_VERSION=(\S+)$", dockerfile, re.MULTILINE)
    images = {
        container["image"]
        for cluster in CLUSTERS
        for pod in pods(cluster)
        for container in pod["containers"]
    }
    assert images == {f"flinkpy:{__version__}"}
    assert {cluster["rayVersion"] for cluster in CLUSTERS} == {ray}
    [least] = re.findall(r'"ray>=([\d.]+)"', (ROOT / "pyproject.toml").read_text())
    assert [int(part) for part in ray.split(".")] >= [int(part) for part in least.split(".")]


def test_it_is_installed_as_the_readme_says() -> None:
    lines = re.findall(r"pip install '[^']*'", (ROOT / "README.md").read_text())
    [said] = {re.sub(r"\[.*?\]", "[...]", line) for line in lines}
    extras = set(re.findall(r"^([a-z]+) = \[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE))
    for name in ("Dockerfile", "ray-up.yaml"):
        [line] = re.findall(r"pip install '[^']*'", (DEPLOY / name).read_text())
        assert re.sub(r"\[.*?\]", "[...]", line) == said
        assert set(line.partition("[")[2].partition("]")[0].split(",")) <= extras


def test_the_programs_that_are_run_are_in_the_image() -> None:
    assert "COPY --chown=ray examples/ ." in (DEPLOY / "Dockerfile").read_text()
    [job] = kinds("RayJob")
    program = shlex.split(job["spec"]["entrypoint"])[-1]
    assert (ROOT / "examples" / Path(program).name).is_file()


def calls() -> list[str]:
    """The calls of flinkpy in the manifests, and behind ``kubectl exec`` on the pages."""
    entrypoints = [each["spec"]["entrypoint"] for each in kinds("RayJob")]
    return entrypoints + [
        line
        for page in PAGES
        for line in re.findall(r"-- (?:\\\n *)?(flinkpy .*)$", page.read_text(), re.MULTILINE)
    ]


@pytest.mark.parametrize("call", calls())
def test_calls_of_flinkpy_are_there_and_set_options_that_there_are(call: str) -> None:
    assert_is_there(call)
    words = shlex.split(call)
    definitions = parse_definitions(value for word, value in pairwise(words) if word == "-D")
    assert set(definitions) <= {option.key for option in SCHEMA}


@pytest.mark.parametrize("page", PAGES, ids=lambda each: str(each.name))
def test_options_in_sentences_are_there(page: Path) -> None:
    groups = {option.key.partition(".")[0] for option in SCHEMA} - {"env", "python"}
    named = re.findall(r"`([a-z][\w-]*(?:\.[\w-]+)+)(?:: [^`]*)?`", page.read_text())
    keys = [
        name
        for name in named
        if name.partition(".")[0] in groups and not name.endswith((".md", ".yaml", ".py"))
    ]
    assert keys
    assert [key for key in keys if key not in SCHEMA] == []
