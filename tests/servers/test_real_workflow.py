"""A whole workflow with a real small model: a dead server first, then a schema in both formats, a stream, a session."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.servers.real_model import RealModel
from tests.whole import runner

pytestmark = pytest.mark.real_model

WORKFLOW = """
steps:
  colour:
    prompt: Name a colour.
    targets:
      - {{name: dead, provider: openai, url: "http://127.0.0.1:1/v1", model: none}}
      - {{name: near, provider: openai, url: "{url}/v1", model: {model}}}
    temperature: 0
    max_tokens: 60
    schema:
      type: object
      required: [colour, warm]
      properties: {{colour: {{enum: [red, green, blue]}}, warm: {{type: boolean}}}}
  why:
    provider: openai
    url: "{url}/v1"
    model: {model}
    depends_on: colour
    session: colour
    prompt: "Say something about {{{{ outputs.colour.colour }}}}."
    temperature: 0
    stream: true
    max_tokens: 400
  other-format:
    provider: anthropic
    url: "{url}"
    model: {model}
    structured: prompt
    prompt: 'Answer with {{"n": 1}}'
    temperature: 0
    max_tokens: 30
    criticality: info
    depends_on: why
  done: {{type: log, depends_on: why, message: "{{{{ outputs.why }}}}"}}
"""


def test_a_workflow_talks_to_a_real_model(real_model: RealModel, tmp_path: Path) -> None:
    """Nobody scripted these bytes: the answer fits its schema, the stream ends, the tokens are counted."""
    ran = runner(tmp_path)(WORKFLOW.format(url=real_model.url, model=real_model.name))
    assert ran["colour"].outcome == "passed", ran["colour"].fault
    assert ran.output("colour")["colour"] in ("red", "green", "blue")
    assert ran["why"].outcome == "passed", ran["why"].fault
    assert ran.output("why").strip()
    assert ran.result.state.spent.tokens > 0
    assert ran["done"].content is not None
    assert any(line.level == "progress" for line in ran.logged)
