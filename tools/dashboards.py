"""Checks the dashboard's structure and writes its queries as recording rules, so that promtool can parse them.
Usage: dashboards.py DASHBOARD.json RULES.json"""

import json
import re
import sys

KINDS = {"row", "stat", "timeseries", "state-timeline"}
COLUMNS = 24


def check(dashboard):
    panels = dashboard["panels"]
    ids = [panel["id"] for panel in panels]
    yield from (f"id {number} is there twice" for number in {n for n in ids if ids.count(n) > 1})
    known = {variable["name"] for variable in dashboard["templating"]["list"]} | {"__rate_interval"}
    cells = {}
    for panel in panels:
        name = panel["title"]
        place = panel["gridPos"]
        if panel["type"] not in KINDS:
            yield f"{name}: {panel['type']} is no kind of panel that is used here"
        if place["x"] + place["w"] > COLUMNS:
            yield f"{name}: is wider than the page"
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                if cells.setdefault((x, y), name) != name:
                    yield f"{name}: lies over {cells[x, y]}"
        if panel["type"] == "row":
            continue
        if not panel.get("description"):
            yield f"{name}: says not what it shows"
        if not panel["fieldConfig"]["defaults"].get("unit"):
            yield f"{name}: has no unit"
        references = [target["refId"] for target in panel["targets"]]
        if not references or len(set(references)) != len(references):
            yield f"{name}: its queries have no names of their own"
        for target in panel["targets"]:
            for variable in re.findall(r"\$(\w+)", target["expr"]):
                if variable not in known:
                    yield f"{name}: there is no variable ${variable}"


def queries(dashboard):
    for panel in dashboard["panels"]:
        yield from (target["expr"] for target in panel.get("targets", []))
    yield from (annotation["expr"] for annotation in dashboard["annotations"]["list"])


def rules(dashboard):
    """A recording rule per query, with each variable replaced by a value. JSON is YAML, too."""
    for number, query in enumerate(queries(dashboard)):
        concrete = re.sub(r"\$\w+", ".*", query.replace("$__rate_interval", "1m"))
        yield {"record": f"dashboard:query{number}", "expr": concrete}


def main():
    source, target = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        dashboard = json.load(file)
    problems = list(check(dashboard))
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        sys.exit(1)
    with open(target, "w", encoding="utf-8") as file:
        json.dump({"groups": [{"name": "dashboard", "rules": list(rules(dashboard))}]}, file)


main()
