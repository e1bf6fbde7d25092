//! The verdict on a region as JSON.

use serde_json::{Value, json};

use crate::verdict::{Fact, Hot, Limit, Remedy, Verdict};

/// Returns the verdict; `null` if there is none.
pub(super) fn value(verdict: Option<&Verdict>) -> Value {
    let Some(verdict) = verdict else { return Value::Null };
    let unjudged = verdict.unjudged.iter().map(|(rule, missing)| json!({ "rule": rule, "missing": missing }));
    json!({
        "result": verdict.result,
        "limits": limits(&verdict.limits),
        "hottest": verdict.hottest.iter().map(hot).collect::<Vec<_>>(),
        "loops": verdict.loops.iter().map(hot_loop).collect::<Vec<_>>(),
        "try": verdict.remedies.iter().map(remedy).collect::<Vec<_>>(),
        "notes": verdict.notes,
        "not_judged": unjudged.collect::<Vec<_>>(),
    })
}

fn limit(limit: &Limit) -> Value {
    let fact = |fact: &Fact| json!({ "title": fact.title, "value": fact.value, "unit": fact.unit });
    json!({
        "rule": limit.rule,
        "title": limit.title,
        "share": limit.share,
        "gain": limit.gain,
        "says": limit.says,
        "evidence": limit.evidence.iter().map(fact).collect::<Vec<_>>(),
    })
}

fn hot(hot: &Hot) -> Value {
    let line = hot.line.as_ref();
    json!({
        "share": hot.share,
        "function": hot.function,
        "name": hot.name(),
        "file": line.map(|line| &line.file),
        "line": line.map(|line| line.number),
        "text": line.and_then(|line| line.text.as_ref()),
        "limits": limits(&hot.limits),
    })
}

fn hot_loop(hot: &Hot) -> Value {
    json!({ "share": hot.share, "loop": hot.function, "limits": limits(&hot.limits) })
}

/// Returns what limits something, the largest share first.
pub(crate) fn limits(limits: &[Limit]) -> Vec<Value> {
    limits.iter().map(limit).collect()
}

fn remedy(remedy: &Remedy) -> Value {
    json!({ "rule": remedy.rule, "do": remedy.text, "command": remedy.command })
}
