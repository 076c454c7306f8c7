//! How much a model is to think, from what a client asked in any dialect's terms.
//!
//! | effort    | budget (models before 4.6) | `output_config.effort` |
//! |-----------|---------------------------:|------------------------|
//! | `minimal` |                      1,024 | `low`                  |
//! | `low`     |                      2,048 | `low`                  |
//! | `medium`  |                      8,192 | `medium`               |
//! | `high`    |                     16,384 | `high`                 |
//! | `xhigh`   |                     24,576 | `xhigh`                |
//! | `max`     |                     31,999 | `max`                  |
//!
//! A budget becomes the first effort whose own is not smaller, `high` at most. What the service does not take together
//! is resolved in this order: a forced tool, then thinking, then temperature. A client that speaks this dialect itself
//! gets what it wrote.

use penstock_model::vendor::{ReasoningSwitch, Wire};
use serde::Serialize;

use super::model;
use crate::dialect::TargetFacts;
use crate::exchange::{Dropped, Part, ReasoningRequest, Request, Role, Turn};

/// The smallest budget that the service takes.
const LEAST: u64 = 1024;

const EFFORTS: [(&str, u64, &str); 6] = [
    ("minimal", LEAST, "low"),
    ("low", 2048, "low"),
    ("medium", 8192, "medium"),
    ("high", 16_384, "high"),
    ("xhigh", 24_576, "xhigh"),
    ("max", 31_999, "max"),
];

/// `thinking`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Config {
    Enabled {
        budget_tokens: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        display: Option<&'static str>,
    },
    Adaptive {
        #[serde(skip_serializing_if = "Option::is_none")]
        display: Option<&'static str>,
    },
    Disabled,
}

/// What is written of it all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan<'a> {
    pub(crate) thinking: Option<Config>,
    pub(crate) effort: Option<&'a str>,
    pub(crate) max_tokens: u64,
}

impl Plan<'_> {
    /// Will the model think?
    pub(crate) fn thinks(&self) -> bool {
        matches!(self.thinking, Some(Config::Enabled { .. } | Config::Adaptive { .. }))
    }
}

/// Decides, also for these models behind Bedrock. `turns` are the ones that are written; `forced`: some tool must be
/// called.
pub(crate) fn plan<'a>(
    request: &'a Request,
    turns: &[Turn],
    target: &TargetFacts<'_>,
    forced: bool,
    dropped: &mut Dropped,
) -> Plan<'a> {
    let limit = request.output.max_tokens;
    let mut plan =
        Plan { thinking: None, effort: None, max_tokens: limit.unwrap_or(target.default_max_tokens) };
    let Some(wish) = &request.reasoning else { return plan };
    if request.wire == Wire::Anthropic {
        as_written(&mut plan, wish, target);
    } else if wish.enabled == Some(false) || wish.effort.as_deref() == Some("none") {
        plan.thinking = Some(Config::Disabled);
    } else if *wish != (ReasoningRequest { visible: Some(false), ..ReasoningRequest::default() }) {
        let by_budget = by_budget(target);
        if forced
            || (by_budget
                && (unsigned_loop(turns, target.vendor.wire) || limit.is_some_and(|limit| limit <= LEAST)))
        {
            dropped.add(name(request));
        } else {
            translated(&mut plan, wish, limit, by_budget, request, dropped);
        }
    }
    plan
}

fn by_budget(target: &TargetFacts<'_>) -> bool {
    model::thinks_by_budget(target.model)
        || target.vendor.parameters.reasoning == ReasoningSwitch::ThinkingType
}

/// The client's own words, but for a budget where the client gave none and the model needs one.
fn as_written<'a>(plan: &mut Plan<'a>, wish: &'a ReasoningRequest, target: &TargetFacts<'_>) {
    let display = display(wish);
    plan.effort = wish.effort.as_deref();
    plan.thinking = match (wish.enabled, wish.budget_tokens) {
        (Some(false), _) => Some(Config::Disabled),
        (Some(true), Some(budget_tokens)) => Some(Config::Enabled { budget_tokens, display }),
        (Some(true), None) if by_budget(target) && plan.max_tokens > LEAST => {
            plan.effort = None;
            let wanted = wish.effort.as_deref().and_then(budget_of).unwrap_or(8192);
            Some(Config::Enabled { budget_tokens: fitting(wanted, plan.max_tokens), display })
        }
        (Some(true), None) => Some(Config::Adaptive { display }),
        (None, _) => None,
    };
}

fn translated<'a>(
    plan: &mut Plan<'a>,
    wish: &'a ReasoningRequest,
    limit: Option<u64>,
    by_budget: bool,
    request: &Request,
    dropped: &mut Dropped,
) {
    let effort = wish.effort.as_deref();
    if effort.is_some_and(|effort| budget_of(effort).is_none()) {
        dropped.add(name(request));
    }
    let budget = wish.budget_tokens.or_else(|| effort.and_then(budget_of));
    let room = budget.unwrap_or(8192).max(LEAST);
    if limit.is_none() {
        // The default is meant for what is said; what is thought counts too.
        plan.max_tokens = plan.max_tokens.saturating_add(room);
    }
    let display = display(wish);
    if by_budget {
        plan.thinking = Some(Config::Enabled { budget_tokens: fitting(room, plan.max_tokens), display });
    } else {
        plan.thinking = Some(Config::Adaptive { display });
        plan.effort = match effort.and_then(entry) {
            Some((_, _, word)) => Some(word),
            None => wish.budget_tokens.map(effort_of),
        };
    }
}

fn display(wish: &ReasoningRequest) -> Option<&'static str> {
    wish.visible.map(|visible| if visible { "summarized" } else { "omitted" })
}

fn entry(effort: &str) -> Option<(&'static str, u64, &'static str)> {
    EFFORTS.into_iter().find(|(word, ..)| *word == effort)
}

fn budget_of(effort: &str) -> Option<u64> {
    entry(effort).map(|(_, budget, _)| budget)
}

fn effort_of(budget: u64) -> &'static str {
    EFFORTS[1..3].iter().find(|(_, most, _)| budget <= *most).map_or("high", |(word, ..)| word)
}

/// A budget below the limit, which leaves a quarter of it for the answer.
fn fitting(budget: u64, max_tokens: u64) -> u64 {
    budget.min(max_tokens / 4 * 3).max(LEAST)
}

/// The name of what is dropped, as the client knows it.
fn name(request: &Request) -> &'static str {
    match request.wire {
        Wire::Gemini => "generationConfig.thinkingConfig",
        Wire::OpenaiResponses => "reasoning",
        Wire::Anthropic => "thinking",
        _ => "reasoning_effort",
    }
}

/// Is the model in the middle of a tool loop that it began without thinking, or under another vendor? Then it may not
/// begin now: the service wants the turn to start with a signed thought.
fn unsigned_loop(turns: &[Turn], wire: Wire) -> bool {
    let Some([calls, results]) = turns.last_chunk() else { return false };
    let signed =
        |part: &Part| matches!(part, Part::Reasoning(thought) if signed_by(wire, thought.signature.as_ref()));
    results.parts.iter().any(|part| matches!(part, Part::ToolResult(_)))
        && calls.role == Role::Assistant
        && !calls.parts.iter().any(signed)
}

fn signed_by(wire: Wire, signature: Option<&crate::exchange::Signature>) -> bool {
    signature.is_some_and(|signature| signature.wire == wire)
}
