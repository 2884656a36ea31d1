"""One workflow for each of the guide's twenty examples: the same constructs, names and data of our own.

`start: routed` stands at steps that only a transition is meant to reach (H41); a `prompt` at every `ai` (H39); a
fan-in that decides for all items says `fanout: reduce` (H44); waits are milliseconds.
"""

from __future__ import annotations

CLASSIFIED = """
steps:
  reply:
    type: github
    criticality: external
"""

IF_GATE = """
steps:
  spelling:
    type: command
    on: [pr_opened, pr_updated]
    if: filesCount > 0 && env.ON_SERVER === 'yes'
    exec: echo checked
"""

ASSUME_ON_A_DEPENDENCY = """
steps:
  unpack: {type: command, exec: echo unpacked}
  inspect:
    type: command
    depends_on: [unpack]
    assume:
      - env.SCANNER === 'ready'
      - outputs_history['unpack'].length === 1 && outputs.unpack === 'unpacked'
    exec: echo inspected
"""

GUARANTEE_WITH_REMEDY = """
steps:
  harvest:
    type: command
    exec: |
      echo '{"crates": [4, 5]}'
    guarantee:
      - output && Array.isArray(output.crates)
      - output.crates.length > 0
    on_fail:
      run: [replant]
  replant: {type: command, exec: echo replanted}
"""

FAIL_IF_WITH_RETRY = """
steps:
  exam:
    type: command
    exec: echo '{}'
    fail_if: output.marks.wrong > 0
    on_fail:
      retry: {max: 2, backoff: {mode: exponential, delay_ms: 4}}
      run: [keep-papers]
  keep-papers: {type: command, exec: echo kept}
"""

VERIFICATION_LOOPBACK = """
steps:
  claims:
    type: ai
    prompt: What does the text claim?
    forEach: true
    on_finish:
      transitions:
        - when: any(outputs_history['check-claim'], s => s && s.holds === false) && event.name === 'issue_opened'
          to: tell-author
        - when: any(outputs_history['check-claim'], s => s && s.holds === false) && event.name === 'issue_comment'
          to: tell-commenter
  check-claim: {type: ai, prompt: "Is it so? {{ outputs.claims }}", depends_on: [claims]}
  tell-author:
    type: ai
    prompt: Tell what doesn't hold.
    start: routed
    on_success:
      transitions:
        - when: output?.wish === 'look_again'
          to: summary
          goto_event: pr_updated
  tell-commenter: {type: ai, prompt: Tell what doesn't hold., start: routed}
  summary: {type: ai, prompt: Sum up., start: routed}
"""

TAGGED_EXTERNAL = """
steps:
  announce:
    type: github
    tags: [critical, external]
    on: [pr_opened]
    op: comment.create
    value: A new build is there.
    assume:
      - env.MAY_ANNOUNCE === 'true'
    guarantee:
      - typeof output.number === 'number'
    continue_on_failure: false
    on_fail:
      retry: {max: 2, backoff: {mode: exponential, delay_ms: 3}}
"""

LABEL = """
steps:
  mark:
    type: github
    criticality: external
    on: [pr_opened]
    op: labels.add
    values: [seen]
    assume: isMember()
    guarantee: Array.isArray(output.now) && output.now.includes('seen')
"""

SOFT = """
steps:
  digest:
    type: ai
    prompt: Sum up the change.
    tags: [info]
    on: [pr_opened, pr_updated]
    continue_on_failure: true
    fail_if: (output.troubles || []).length > 0
  file-digest: {type: noop, depends_on: digest}
"""

STRICT_COMMENT_BY_TAGS = """
steps:
  thank:
    type: github
    tags: [critical, external]
    on: [pr_opened]
    op: comment.create
    value: Thanks!
    assume:
      - isMember()
      - env.REHEARSAL !== 'true'
    guarantee:
      - output && typeof output.number === 'number'
    continue_on_failure: false
    on_fail:
      retry: {max: 2, backoff: {mode: exponential, delay_ms: 2}}
"""

STRICT_COMMENT = STRICT_COMMENT_BY_TAGS.replace("tags: [critical, external]", "criticality: external")

CONTROL_LIST_BY_TAGS = """
routing: {max_loops: 8}
steps:
  doors:
    type: command
    tags: [critical, internal]
    exec: |
      echo '["north", "east", "south"]'
    forEach: true
    on_finish:
      transitions:
        - when: any(outputs_history['lock'], seen => seen && seen.shut === false)
          to: locksmith
  lock:
    type: command
    depends_on: [doors]
    fanout: map
    exec: |
      echo '{"shut": true}'
  locksmith: {type: command, start: routed, exec: echo mended}
"""

CONTROL_LIST = CONTROL_LIST_BY_TAGS.replace("tags: [critical, internal]", "criticality: internal")

ITEM_RETRIES = """
steps:
  parcels:
    type: command
    exec: |
      echo '["red", "blue"]'
    forEach: true
  weigh:
    type: command
    depends_on: [parcels]
    fanout: map
    exec: echo weighed
    fail_if: output.lost === true
    on_fail:
      retry: {max: 1, backoff: {mode: fixed, delay_ms: 5}}
"""

NO_FILES_IF = """
steps:
  digest:
    type: ai
    prompt: Sum up the change.
    on: [pr_opened, pr_updated]
    if: filesCount > 0
"""

NO_FILES_ASSUME = """
steps:
  digest:
    type: ai
    prompt: Sum up the change.
    on: [pr_opened, pr_updated]
    assume:
      - filesCount > 0
"""

INVARIANT_BY_GUARANTEE = """
steps:
  gather:
    type: command
    exec: |
      echo '{"shells": [1]}'
    guarantee:
      - output && Array.isArray(output.shells)
      - output.shells.length > 0
    on_fail:
      run: [dive-again]
  dive-again: {type: command, exec: echo dived}
"""

INVARIANT_BY_FAIL_IF = """
steps:
  gather:
    type: command
    exec: |
      echo '{"shells": [1]}'
    fail_if: "!(output && Array.isArray(output.shells) && output.shells.length > 0)"
    on_fail:
      run: [dive-again]
  dive-again: {type: command, exec: echo dived}
"""

GUARD_STEP = """
steps:
  tools:
    type: command
    exec: test -e hammer
    fail_if: output_meta.exit_code !== 0
  build:
    type: command
    depends_on: [tools]
    exec: echo built
"""

WHOLE_FLOW = """
routing: {max_loops: 8}
steps:
  statements:
    type: command
    criticality: internal
    on: [issue_opened, issue_comment]
    exec: |
      echo '[{"no": 1, "text": "fast"}, {"no": 2, "text": "small"}]'
    forEach: true
    guarantee:
      - Array.isArray(output)
      - output.every(one => typeof one.no === 'number' && typeof one.text === 'string')
      - output.length <= 5
    on_finish:
      transitions:
        - when: any(outputs_history['verify'], s => s && s.holds === false) && event.name === 'issue_opened'
          to: ask-author
        - when: any(outputs_history['verify'], s => s && s.holds === false) && event.name === 'issue_comment'
          to: ask-commenter
  verify:
    type: command
    depends_on: [statements]
    fanout: map
    exec: |
      echo '{"holds": true}'
    fail_if: output && output.holds === false
    on_fail:
      retry: {max: 1, backoff: {mode: exponential, delay_ms: 3}}
  tally:
    type: command
    criticality: internal
    depends_on: [verify]
    fanout: reduce
    exec: |
      echo '{"all_hold": true}'
    guarantee:
      - output && typeof output.all_hold === 'boolean'
    on_success:
      transitions:
        - when: output.all_hold === true
          to: permit
  permit:
    type: command
    criticality: policy
    start: routed
    exec: |
      echo '{"granted": true}'
    guarantee:
      - typeof output.granted === 'boolean'
  publish:
    type: github
    criticality: external
    depends_on: [permit]
    on: [issue_opened]
    if: outputs['permit'] && outputs['permit'].granted === true
    assume:
      - outputs['permit'] && outputs['permit'].granted === true
      - env.REHEARSAL !== 'true'
    op: comment.create
    value: It all holds.
    guarantee:
      - output && typeof output.number === 'number'
    continue_on_failure: false
  digest:
    type: ai
    prompt: Sum up.
    criticality: info
    on: [issue_opened]
    continue_on_failure: true
    fail_if: (output.troubles || []).length > 0
  ask-author: {type: ai, prompt: What did you mean?, start: routed}
  ask-commenter: {type: ai, prompt: What did you mean?, start: routed}
"""

TWINS = {
    1: CLASSIFIED,
    2: IF_GATE,
    3: ASSUME_ON_A_DEPENDENCY,
    4: GUARANTEE_WITH_REMEDY,
    5: FAIL_IF_WITH_RETRY,
    6: VERIFICATION_LOOPBACK,
    7: TAGGED_EXTERNAL,
    8: LABEL,
    9: SOFT,
    10: STRICT_COMMENT_BY_TAGS,
    11: CONTROL_LIST_BY_TAGS,
    12: ITEM_RETRIES,
    13: STRICT_COMMENT,
    14: CONTROL_LIST,
    15: NO_FILES_IF,
    16: NO_FILES_ASSUME,
    17: INVARIANT_BY_GUARANTEE,
    18: INVARIANT_BY_FAIL_IF,
    19: GUARD_STEP,
    20: WHOLE_FLOW,
}
