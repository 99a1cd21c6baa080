"""What `deploy/` offers, judged by Kubernetes' published schemas, by systemd and by Prometheus."""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.weft_program import in_process
from weft.cli.command_line import run_command_line

pytestmark = pytest.mark.oracle

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
VERSIONS = ("1.29", "1.31")


def manifests() -> list[dict[str, Any]]:
    yaml = pytest.importorskip("yaml")
    return list(yaml.safe_load_all((DEPLOY / "kubernetes/weft.yaml").read_text()))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_manifests_are_valid(version: str) -> None:
    validate = pytest.importorskip("kubernetes_validate")
    kinds = []
    for each in manifests():
        validate.validate(each, version, strict=True)
        kinds.append(each["kind"])
    assert sorted(kinds) == ["PodDisruptionBudget", "Service", "Service", "StatefulSet"]


def test_a_manifest_that_is_wrong_is_found() -> None:
    validate = pytest.importorskip("kubernetes_validate")
    wrong = copy.deepcopy(manifests()[-1])
    wrong["spec"]["template"]["spec"]["containers"][0]["readinesProbe"] = {}
    with pytest.raises(validate.ValidationError):
        validate.validate(wrong, VERSIONS[-1], strict=True)


@pytest.mark.process
def test_the_unit_is_valid(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze")
    # The program is not installed here: any that is will do.
    text = (DEPLOY / "systemd/weft@.service").read_text()
    unit = tmp_path / "weft@web-0.service"
    unit.write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    about_it = [line for line in done.stderr.splitlines() if "weft@" in line]
    assert about_it == []


@pytest.mark.process
def test_the_alerts_and_every_query_of_the_dashboard_are_valid(tmp_path: Path) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("there is no promtool")
    dashboard = json.loads((DEPLOY / "grafana/weft.json").read_text())
    queries = [
        target["expr"].replace("$job", "weft")
        for panel in dashboard["panels"]
        for target in panel["targets"]
    ]
    assert len(queries) >= 15
    rules = [{"record": f"panel:{number}", "expr": text} for number, text in enumerate(queries)]
    panels = tmp_path / "panels.yaml"
    panels.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(panels.read_text().replace("sum by", "sum of"))
    for file, is_valid in [(DEPLOY / "prometheus/alerts.yaml", 1), (panels, 1), (wrong, 0)]:
        done = subprocess.run(["promtool", "check", "rules", str(file)], check=False)
        assert (done.returncode == 0) == bool(is_valid), file.name


@pytest.mark.parametrize("file", ["kubernetes/weft.yaml", "systemd/weft@.service"])
def test_every_option_that_is_used_is_one(file: str, tmp_path: Path) -> None:
    text = "".join(
        line for line in (DEPLOY / file).read_text().splitlines(keepends=True) if "#" not in line
    )
    used = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))
    assert used > {"--public", "--advertise", "--drain"}
    with in_process(dict(os.environ), tmp_path, b"") as (output, _):
        run_command_line(["serve", "--help"])
        sys.stdout.flush()
        output.seek(0)
        known = set(re.findall(r"--[a-z][a-z-]+", output.read().decode()))
    assert used - known == set()
