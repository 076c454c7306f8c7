"""Checks what the schemas of Kubernetes cannot: that rendered resources fit together and that no pod has more rights
than it needs. Usage: manifests.py RENDERED.yaml"""

import sys

import yaml


def pod_templates(resources):
    for resource in resources:
        if resource["kind"] == "Pod":
            yield resource["metadata"], resource["spec"]
        elif resource["kind"] in ("Deployment", "StatefulSet"):
            template = resource["spec"]["template"]
            yield {**template["metadata"], "name": resource["metadata"]["name"]}, template["spec"]


def check_rights(name, spec):
    pod = spec.get("securityContext", {})
    if not pod.get("runAsNonRoot") or not pod.get("runAsUser"):
        yield f"{name}: may run as root"
    if pod.get("seccompProfile", {}).get("type") != "RuntimeDefault":
        yield f"{name}: has no seccomp profile"
    if spec.get("automountServiceAccountToken") is not False:
        yield f"{name}: is handed a token of the cluster's API"
    for container in spec["containers"]:
        context = container.get("securityContext", {})
        if not context.get("readOnlyRootFilesystem") or context.get("allowPrivilegeEscalation") is not False:
            yield f"{name}: may write to its image or gain privileges"
        if context.get("capabilities", {}).get("drop") != ["ALL"]:
            yield f"{name}: keeps capabilities"
        resources = container.get("resources", {})
        if not {"cpu", "memory"} <= set(resources.get("requests", {})) or "memory" not in resources.get("limits", {}):
            yield f"{name}: asks for no resources or has no memory limit"


def check_volumes(name, resource_spec, spec):
    claims = [claim["metadata"]["name"] for claim in resource_spec.get("volumeClaimTemplates", [])]
    there = {volume["name"] for volume in spec.get("volumes", [])} | set(claims)
    for container in spec["containers"]:
        for mount in container.get("volumeMounts", []):
            if mount["name"] not in there:
                yield f"{name}: mounts {mount['name']}, which it does not have"


def check_shutdown(name, spec):
    for container in spec["containers"]:
        delay = container.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
        drains = [arg.removeprefix("--drain=") for arg in container.get("args", []) if arg.startswith("--drain=")]
        drain = int(drains[0].removesuffix("s")) if drains else 0
        if delay + drain >= spec.get("terminationGracePeriodSeconds", 30):
            yield f"{name}: is killed before its drain time is over"


def check_selectors(resources, pods):
    for resource in resources:
        kind, spec = resource["kind"], resource.get("spec", {})
        name = f"{kind}/{resource['metadata']['name']}"
        if kind == "Service":
            selector, ports = spec["selector"], [port["targetPort"] for port in spec["ports"]]
        elif kind in ("Deployment", "StatefulSet", "PodDisruptionBudget"):
            selector, ports = spec["selector"]["matchLabels"], []
        elif kind == "NetworkPolicy":
            selector = spec["podSelector"]["matchLabels"]
            ports = [port["port"] for rule in spec["ingress"] for port in rule["ports"]]
        else:
            continue
        chosen = [(meta, pod) for meta, pod in pods if selector.items() <= meta["labels"].items()]
        if len(chosen) != 1:
            yield f"{name}: selects {[meta['name'] for meta, _ in chosen]}, not one kind of pod"
            continue
        named = {port["name"] for container in chosen[0][1]["containers"] for port in container.get("ports", [])}
        for port in ports:
            if port not in named:
                yield f"{name}: port {port} is not one of {sorted(named)}"


def check_names(resources):
    names = [(resource["kind"], resource["metadata"]["name"]) for resource in resources]
    yield from (f"{kind}/{name}: is there twice" for kind, name in set(names) if names.count((kind, name)) > 1)
    maps = {name for kind, name in names if kind == "ConfigMap"}
    services = {name for kind, name in names if kind == "Service"}
    for resource in resources:
        spec = resource.get("spec", {})
        if resource["kind"] == "StatefulSet" and spec["serviceName"] not in services:
            yield f"{resource['metadata']['name']}: has no service {spec['serviceName']}"
        for volume in spec.get("template", {}).get("spec", {}).get("volumes", []):
            if "configMap" in volume and volume["configMap"]["name"] not in maps:
                yield f"{resource['metadata']['name']}: mounts a ConfigMap that is not there"


def main():
    with open(sys.argv[1], encoding="utf-8") as rendered:
        resources = [resource for resource in yaml.safe_load_all(rendered) if resource]
    pods = list(pod_templates(resources))
    problems = [*check_selectors(resources, pods), *check_names(resources)]
    for resource in resources:
        for meta, spec in pod_templates([resource]):
            problems += check_rights(meta["name"], spec)
            problems += check_shutdown(meta["name"], spec)
            problems += check_volumes(meta["name"], resource["spec"], spec)
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(1 if problems else 0)


main()
