//! A run as JSON. The keys are stable: scripts depend on them.

use std::collections::BTreeMap;

use fxscope_pmu::{Events, Metrics, scope};
use fxscope_record::{ALL, Finish, Mode, Pages, Region, Run};
use serde_json::{Value, json};

/// One run. Events and metrics that are not known are absent; `exit_code` and the members of `simulated` are
/// `null` when they are not known.
#[must_use]
pub fn run(run: &Run) -> Value {
    let metrics = Metrics::built_in();
    let whole = run.region(ALL).map(|r| metrics.of_region(r, &run.constants)).unwrap_or_default();
    let events = Events::of(&run.machine).unwrap_or_else(Events::of_the_model);
    // Counts are whole numbers here too.
    let count = |name: &str| whole.get(name).map(|&n| n.round() as u64);
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
            "seconds": whole.get("seconds"),
            "instructions": count("instructions"),
            "ipc": whole.get("ipc"),
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
    let threads = region.threads.iter().map(|t| json!({"thread": t.thread, "cpu": t.cpu, "events": t.events}));
    json!({
        "name": region.name,
        "calls": region.calls,
        "events": scope::totals(events, region, &run.constants),
        "metrics": Metrics::built_in().of_region(region, &run.constants),
        "threads": threads.collect::<Vec<_>>(),
    })
}
