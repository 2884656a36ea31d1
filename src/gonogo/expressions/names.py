"""The names an expression may use: data of the scope, helper functions, and what the language brings.

One scope for all constructs (engine spec B.2 D): a name that can't have a value somewhere is null there.
`js/helpers.js` defines the helpers; a test holds both lists together. Who fills the names is left to the
callers.
"""

from __future__ import annotations

from typing import Literal

Kind = Literal["condition", "value", "script"]

KNOWN_NAMES: frozenset[str] = frozenset(
    """
    output outputs outputs_history outputs_wave outputs_raw outputs_meta output_meta outputs_history_stage
    event env memory pr files filesChanged filesCount fileCount branch baseBranch inputs args conversation
    step forEach attempt loop error now item index issues metadata criticalIssues errorIssues warningIssues
    infoIssues totalIssues checkName schema group debug utils checks_meta response value webhook
    """.split()
)

CALL_NAMES: frozenset[str] = frozenset(
    """
    phase step attempt target_attempt target target_index targets_count can_switch has_fallback error_kind error
    response latency_s validation_error validation_errors attempts_per_target cost_usd input_tokens output_tokens tokens
    delivered streaming elapsed_s left_s effect effects integrity fallbacks waits
    """.split()
)
"""What a rule of an outbound call's policy sees beside those; null anywhere else, where the check of a file refuses
them. `gate/scopes.py` fills them; a test holds both lists together.
"""

HELPERS: frozenset[str] = frozenset(
    """
    contains startsWith endsWith length always success failure hasIssue countIssues hasFileMatching
    any all none count hasMinPermission isOwner isMember isCollaborator isContributor isFirstTimer
    log escapeXml btoa atob
    """.split()
)

LAZY_NAMES: frozenset[str] = frozenset(
    ("outputs", "outputs_history", "outputs_wave", "outputs_raw", "outputs_meta")
)
"""Mappings whose entries are sent one by one, when an expression needs them."""

STATUS = "$status"
ASSOCIATION = "$association"
NAMESPACE = "$namespace"

STATUS_HELPERS: frozenset[str] = frozenset(("always", "success", "failure"))
PERMISSION_HELPERS: frozenset[str] = frozenset(
    ("hasMinPermission", "isOwner", "isMember", "isCollaborator", "isContributor", "isFirstTimer")
)

BUILTINS: frozenset[str] = frozenset(
    """
    undefined NaN Infinity Array ArrayBuffer BigInt BigInt64Array BigUint64Array Boolean DataView Date Error
    AggregateError EvalError RangeError ReferenceError SyntaxError TypeError URIError Float32Array
    Float64Array Int8Array Int16Array Int32Array Iterator JSON Map Math Number Object Promise Proxy Reflect
    RegExp Set String Symbol Uint8Array Uint8ClampedArray Uint16Array Uint32Array WeakMap WeakSet globalThis
    parseInt parseFloat isNaN isFinite encodeURI encodeURIComponent decodeURI decodeURIComponent escape
    unescape arguments
    """.split()
)
"""What the language itself offers inside the sandbox."""
