//! A run as JSON. The keys are stable: scripts depend on them.

use std::collections::BTreeMap;

use fxscope_pmu::{Evaluation, Events, Values, scope};
use fxscope_record::{ALL, Finish, Mode, Pages, Region, Run};
use serde_json::{Value, json};

/// One run. Events and metrics that are not known are absent; `exit_code` and the members of `simulated` are
/// `null` when they are not known.
#[must_use]
pub fn run(run: &Run) -> Value {
    let whole = run.region(ALL).map(|r| Evaluation::new(run, r).total());
    let events = Events::of(&run.machine).unwrap_or_else(Events::of_the_model);
    // Counts are whole numbers here too.
    let metric = |name: &str| whole.as_ref().and_then(|values| values.get(name));
    let count = |name: &str| metric(name).map(|n| n.round() as u64);
    let pairs = |list: &[(String, String)]| list.iter().cloned().collect::<BTreeMap<_, _>>();
    json!({
        "tool": run.tool,
        "machine": run.machine,
        "machine_hash": run.machine_hash,
        "settings": pairs(&run.settings),
        "program": run.program(),
        "arguments": run.command.get(1..).unwrap_or_default(),
        "environment": pairs(&run.environment),
        "mode": match run.mode { Mode::Timing => "timing", Mode::Functional => "functional" },
        "finish": finish(&run.finish),
        "exit_code": run.finish.exit_code(),
        "simulated": {
            "cycles": count("cycles"),
            "seconds": metric("seconds"),
            "instructions": count("instructions"),
            "ipc": metric("ipc"),
        },
        "host": {
            "wall_seconds": run.host.wall_seconds,
            "mips": run.host.mips,
            "peak_rss_bytes": run.host.peak_rss_bytes,
            "guest_bytes": run.host.guest_bytes,
            "cpus": run.host.cpus,
        },
        "notes": run.notes,
        "pages": run.pages.iter().map(pages).collect::<Vec<_>>(),
        "regions": run.regions.iter().map(|r| region(r, run, &events)).collect::<Vec<_>>(),
    })
}

fn pages(p: &Pages) -> Value {
    json!({
        "segment": p.segment,
        "page_bytes": p.page_bytes,
        "node": p.node,
        "pages": p.pages,
        "bytes": p.bytes,
        "lost_bytes": p.lost(),
    })
}

fn finish(finish: &Finish) -> String {
    match finish {
        Finish::Exited(_) => "exited".to_owned(),
        Finish::Killed { message, .. } | Finish::Failed(message) => message.clone(),
        Finish::Limit => "limit".to_owned(),
        Finish::Stopped => "stopped".to_owned(),
    }
}

fn region(region: &Region, run: &Run, events: &Events) -> Value {
    let evaluation = Evaluation::new(run, region);
    let of_threads = region.threads.iter().zip(evaluation.threads()).enumerate();
    let threads = of_threads.map(|(i, (t, values))| {
        json!({
            "process": t.process,
            "thread": t.thread,
            "node": t.node,
            "cpu": t.cpu,
            "events": region.counts(i),
            "metrics": metrics(&values),
        })
    });
    let cmgs = evaluation
        .cmgs()
        .into_iter()
        .map(|(team, values)| json!({ "process": team.process, "cmg": team.cmg, "metrics": metrics(&values) }));
    json!({
        "name": region.name,
        "calls": region.calls,
        "events": scope::totals(events, region, &run.constants),
        "metrics": metrics(&evaluation.total()),
        "cmgs": cmgs.collect::<Vec<_>>(),
        "threads": threads.collect::<Vec<_>>(),
    })
}

fn metrics(values: &Values) -> BTreeMap<&'static str, f64> {
    values.iter().map(|(metric, value)| (metric.name.as_str(), value)).collect()
}
