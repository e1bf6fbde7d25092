//! A run as JSON. The keys are stable: scripts depend on them.

use std::collections::BTreeMap;

use fxscope_pmu::{Cell, Column, Evaluation, Events, Metrics, Values, scope};
use fxscope_record::{ALL, Finish, Mode, Origin, Pages, Region, Run};
use serde::ser::{Serialize, SerializeMap as _, SerializeSeq as _, Serializer};
use serde_json::{Map, Value, json};

/// One run. Events and metrics that are not known are absent; `exit_code` and the members of `simulated` are
/// `null` when they are not known.
#[must_use]
pub fn run(run: &Run) -> Value {
    let events = events(run);
    let mut json = head(run);
    json.insert("regions".to_owned(), run.regions.iter().map(|r| region(r, run, &events)).collect());
    Value::Object(json)
}

/// Runs as a list of what [`run`] gives, made region by region while it is written: together they may be large.
pub struct Runs<'a>(pub &'a [Run]);

impl Serialize for Runs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(OneRun))
    }
}

struct OneRun<'a>(&'a Run);

impl Serialize for OneRun<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in &head(self.0) {
            map.serialize_entry(key, value)?;
        }
        map.serialize_entry("regions", &Regions(self.0))?;
        map.end()
    }
}

struct Regions<'a>(&'a Run);

impl Serialize for Regions<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let events = events(self.0);
        let mut list = serializer.serialize_seq(Some(self.0.regions.len()))?;
        for r in &self.0.regions {
            list.serialize_element(&region(r, self.0, &events))?;
        }
        list.end()
    }
}

fn events(run: &Run) -> Events {
    Events::of(&run.machine).unwrap_or_else(Events::of_the_model)
}

/// What is known about a run as a whole.
fn head(run: &Run) -> Map<String, Value> {
    let whole = run.region(ALL).map(|r| Evaluation::new(run, r).total());
    // Counts are whole numbers here too.
    let metric = |name: &str| whole.as_ref().and_then(|values| values.get(name));
    let count = |name: &str| metric(name).map(|n| n.round() as u64);
    let pairs = |list: &[(String, String)]| list.iter().cloned().collect::<BTreeMap<_, _>>();
    let json = json!({
        "tool": run.tool,
        "machine": run.machine,
        "machine_hash": run.machine_hash,
        "settings": pairs(&run.settings),
        "program": run.program(),
        "arguments": run.command.get(1..).unwrap_or_default(),
        "environment": pairs(&run.environment),
        "mode": match run.mode { Mode::Timing => "timing", Mode::Functional => "functional" },
        "origin": origin(&run.origin),
        "passes": run.passes,
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
    });
    match json {
        Value::Object(map) => map,
        _ => Map::new(),
    }
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

fn origin(origin: &Origin) -> Value {
    match origin {
        Origin::Simulated => json!({ "kind": "simulated" }),
        Origin::Imported { format, files } => json!({ "kind": "imported", "format": format, "files": files }),
    }
}

fn finish(finish: &Finish) -> String {
    match finish {
        Finish::Exited(_) => "exited".to_owned(),
        Finish::Killed { message, .. } | Finish::Failed(message) => message.clone(),
        Finish::Unknown => "unknown".to_owned(),
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
        "tables": tables(&evaluation),
    })
}

/// The columns of the CPU performance analysis report by identifier; those without any value are left out.
fn tables(evaluation: &Evaluation) -> BTreeMap<&'static str, Value> {
    let columns = Metrics::built_in().tables().iter().flat_map(|table| &table.columns);
    let column = |column: &'static Column| {
        let cells = evaluation.column(column);
        let value = |cell: &Option<Cell>| cell.map(|cell| cell.value);
        let values = |cells: &[Option<Cell>]| cells.iter().map(value).collect::<Vec<_>>();
        let (threads, cmgs, total) = (values(&cells.threads), values(&cells.cmgs), value(&cells.total));
        let known = threads.iter().chain(&cmgs).chain([&total]).any(Option::is_some);
        known.then(|| {
            let mut json = json!({ "title": cells.title, "unit": column.unit });
            if column.threads {
                json["threads"] = json!(threads);
            }
            if column.totals {
                json["cmgs"] = json!(cmgs);
                json["total"] = json!(total);
            }
            (column.id.as_str(), json)
        })
    };
    columns.filter_map(column).collect()
}

fn metrics(values: &Values) -> BTreeMap<&'static str, f64> {
    values.iter().map(|(metric, value)| (metric.name.as_str(), value)).collect()
}
