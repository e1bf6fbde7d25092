//! Loops of a run: where the time went, between functions and instructions.

use fxscope_record::functions::omp_region_of;
use fxscope_record::{Loop, Run};
use serde_json::{Value as Json, json};

use crate::causes;
use crate::document::{Document, Row, Section, Value};
use crate::render::{csv, json};
use crate::sections::{plain, title};
use crate::verdict::{Limit, in_short};

/// Loops that the terminal lists; the others are summed in one line.
const SHOWN: usize = 20;

/// Loops that the first screen lists, the title of their table, and the least share of the cycles of each.
const FIRST: usize = 5;
pub(crate) const HOTTEST: &str = "Hottest loops";
const LEAST_SHARE: f64 = 0.01;

/// Events of refills: lines that came into L1D, and those that came into L2, prefetches included.
const L1_REFILL: &str = "L1D_CACHE_REFILL";
const L2_REFILL: &str = "L2D_CACHE_REFILL";

/// Columns of the CSV form.
const COLUMNS: [&str; 27] = [
    "run",
    "loop",
    "parent",
    "depth",
    "function",
    "address",
    "file",
    "first_line",
    "last_line",
    "iterations",
    "entries",
    "trips",
    "instructions",
    "cycles",
    "own_cycles",
    "total_cycles",
    "share",
    "own_share",
    "ipc",
    "flop",
    "vector_bits",
    "active_elements",
    "l1_bytes",
    "l2_bytes",
    "memory_bytes",
    "intensity",
    "limit",
];

/// A loop of a run with its share of the run's cycles.
#[derive(Clone, Copy, Debug)]
pub struct HotLoop<'a> {
    /// Its index in [`fxscope_record::Profile::loops`].
    pub index: usize,
    /// The loop.
    pub of: &'a Loop,
    /// Loops around it in its function.
    pub depth: usize,
    /// The share of its instructions in the cycles of all threads, 0 to 1, without functions that it calls.
    pub share: f64,
    /// The same without inner loops.
    pub own_share: f64,
}

/// Returns the loops of a run, those with most cycles of their own first.
#[must_use]
pub fn hottest(run: &Run) -> Vec<HotLoop<'_>> {
    let all = crate::annotate::cycles(run);
    let share = |cycles: u64| if all == 0 { 0.0 } else { cycles as f64 / all as f64 };
    let hot = |(index, of): (usize, &'_ Loop)| (index, share(of.cycles), share(of.own_cycles));
    let mut list: Vec<HotLoop> = run
        .profile
        .loops
        .iter()
        .enumerate()
        .map(|(index, of)| {
            let (index, share, own_share) = hot((index, of));
            HotLoop { index, of, depth: run.profile.depth(index), share, own_share }
        })
        .collect();
    list.sort_by_key(|hot| (std::cmp::Reverse(hot.of.own_cycles), hot.index));
    list
}

impl HotLoop<'_> {
    /// Returns its name: the function and the source lines or, without debug information, the offset of its head in the function.
    #[must_use]
    pub fn name(&self) -> String {
        name(self.of)
    }
}

/// Returns the name of a loop: its function and its source lines or, without debug information, the offset of its head.
#[must_use]
pub fn name(of: &Loop) -> String {
    match &of.source {
        Some(lines) => match omp_region_of(&of.function) {
            Some(function) => plain(&format!("{function}, OpenMP region ({lines})")),
            None => plain(&format!("{} ({lines})", of.function)),
        },
        None => plain(&format!("{}+{:#x}", of.function, of.offset)),
    }
}

/// Bytes that a loop has moved.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Traffic {
    /// Loaded and stored by its instructions.
    pub l1: f64,
    /// Brought into L1D, by its accesses or by prefetches that they triggered; `None` if not recorded. Lines that are written back
    /// are not included: they are of no single instruction.
    pub l2: Option<f64>,
    /// Brought into L2, in the same way.
    pub memory: Option<f64>,
}

impl Traffic {
    /// Returns the bytes that a loop of a run has moved.
    #[must_use]
    pub fn of(run: &Run, of: &Loop) -> Traffic {
        let lines = |event| Some(run.profile.event(of, event)? as f64 * run.constants.get("line_bytes")?);
        let l1 = of.accesses.loaded.saturating_add(of.accesses.stored) as f64;
        Traffic { l1, l2: lines(L1_REFILL), memory: lines(L2_REFILL) }
    }

    /// Returns operations per byte of a level's traffic; `None` without traffic.
    fn intensity(of: &Loop, bytes: Option<f64>) -> Option<f64> {
        bytes.filter(|&bytes| bytes > 0.0).map(|bytes| of.arithmetic.operations as f64 / bytes)
    }
}

/// A loop as a point of a roofline, for one core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RooflinePoint {
    /// Its rate while a core executes its instructions, GFLOPS.
    pub gflops: f64,
    /// Operations per byte that its instructions load and store, FLOP/B.
    pub l1: Option<f64>,
    /// The same for bytes brought into L1D.
    pub l2: Option<f64>,
    /// The same for bytes brought into L2.
    pub memory: Option<f64>,
}

/// Returns a loop as a point of a roofline; `None` without floating-point operations or cycles.
#[must_use]
pub fn roofline(run: &Run, of: &Loop) -> Option<RooflinePoint> {
    let hz = run.constants.get("core_hz")?;
    if of.cycles == 0 || of.arithmetic.operations == 0 {
        return None;
    }
    let gflops = of.arithmetic.operations as f64 / of.cycles as f64 * hz / 1e9;
    let traffic = Traffic::of(run, of);
    let [l1, l2, memory] = [Some(traffic.l1), traffic.l2, traffic.memory].map(|bytes| Traffic::intensity(of, bytes));
    Some(RooflinePoint { gflops, l1, l2, memory })
}

/// Returns the loops of a run as a table, those with most cycles of their own first; `None` if the record has none.
#[must_use]
pub fn document(run: &Run) -> Option<Document> {
    (!run.profile.loops.is_empty()).then(|| Document {
        title: title(run),
        columns: Vec::new(),
        sections: sections(run),
    })
}

/// Returns the few loops with most cycles of their own, and what they wait for; `None` if there are none.
pub(crate) fn hottest_section(run: &Run) -> Option<Section> {
    let hot = hottest(run).into_iter().filter(|hot| hot.own_share >= LEAST_SHARE).take(FIRST);
    let row = |hot: HotLoop| {
        let number = |number: Option<f64>| number.map(|number| Value::number(number, ""));
        let gflops = roofline(run, hot.of).map(|point| point.gflops);
        let waits = waits(run, hot.of).and_then(|row| row.values.into_iter().next().flatten());
        let limits = in_short(&causes::of_loop(run, hot.index));
        let limits = (!limits.is_empty()).then(|| Value::text(limits));
        let values =
            vec![Some(Value::number(hot.own_share, "ratio")), number(hot.of.ipc()), number(gflops), waits, limits];
        Row { label: hot.name(), values }
    };
    let rows: Vec<Row> = hot.map(row).collect();
    let headings = ["Loop", "cycles", "IPC", "GFLOPS", "waits for", "limited by"];
    (!rows.is_empty()).then(|| Section::table(HOTTEST, headings, rows))
}

/// Returns the tables of loops, and how to read them.
pub(crate) fn sections(run: &Run) -> Vec<Section> {
    let hot = hottest(run);
    let (shown, others) = hot.split_at(hot.len().min(SHOWN));
    let mut rows: Vec<Row> = shown.iter().map(|hot| row(run, hot)).collect();
    if !others.is_empty() {
        let own: f64 = others.iter().map(|hot| hot.own_share).sum();
        let label = format!("({} other loops)", others.len());
        rows.push(Row { label, values: vec![Some(Value::number(own, "ratio"))] });
    }
    let headings = ["Loop", "own", "time", "iterations", "trips", "IPC", "GFLOPS", "bits", "FLOP/B"];
    let calling = calling(run, shown);
    let waits: Vec<Row> = shown.iter().filter_map(|hot| waits(run, hot.of)).collect();
    let limits: Vec<Row> = shown.iter().filter_map(|hot| limits(run, hot)).collect();
    let mut sections = vec![Section::table("Loops", headings, rows)];
    if !calling.is_empty() {
        sections.push(Section::table(
            "Loops with the functions that they call",
            ["With calls", "time", "total"],
            calling,
        ));
    }
    if !waits.is_empty() {
        sections.push(Section::table(
            "What they wait for",
            ["Loop", "cycles without a commit, share of the loop"],
            waits,
        ));
    }
    if !limits.is_empty() {
        sections.push(Section::table("What limits them", ["Loop", "cause", "of its cycles", "evidence"], limits));
    }
    sections.push(Section::notes("Notes", vec![READING.to_owned()]));
    sections
}

/// How to read the table.
const READING: &str = "Shares are of thread time, the cycles of all threads: own without inner loops, time with them; functions that a loop calls are in \
                       neither, only in the total. Trips are iterations per entry. GFLOPS is the rate of one core in the loop, bits the mean width of \
                       an instruction with floating-point operations, FLOP/B operations per byte brought into L2.";

fn row(run: &Run, hot: &HotLoop) -> Row {
    let of = hot.of;
    let number = |number: Option<f64>, unit| number.map(|number| Value::number(number, unit));
    let point = roofline(run, of);
    let of_point = |get: fn(&RooflinePoint) -> Option<f64>| number(point.as_ref().and_then(get), "");
    let values = vec![
        Some(Value::number(hot.own_share, "ratio")),
        Some(Value::number(hot.share, "ratio")),
        Some(Value::number(of.iterations as f64, "count")),
        number(of.trips(), ""),
        number(of.ipc(), ""),
        of_point(|point| Some(point.gflops)),
        number(of.arithmetic.vector_bits(), ""),
        of_point(|point| point.memory),
    ];
    Row { label: format!("{}{}", "  ".repeat(hot.depth), name(of)), values }
}

/// The loops whose time is more with the functions that they call.
fn calling(run: &Run, shown: &[HotLoop]) -> Vec<Row> {
    let all = crate::annotate::cycles(run);
    let Some(totals) = crate::calls::cycles_of_loops(run).filter(|_| all > 0) else { return Vec::new() };
    let more = shown.iter().filter(|hot| totals[hot.index] > hot.of.cycles);
    let row = |hot: &HotLoop| {
        let total = totals[hot.index] as f64 / all as f64;
        Row {
            label: hot.name(),
            values: vec![Some(Value::number(hot.share, "ratio")), Some(Value::number(total, "ratio"))],
        }
    };
    more.map(row).collect()
}

/// Causes of waiting that are listed for a loop, and the smallest share of its cycles among them.
const CAUSES: usize = 3;
const LEAST: f64 = 0.05;

/// The main causes of a loop's cycles without a commit.
fn waits(run: &Run, of: &Loop) -> Option<Row> {
    let mut causes: Vec<(&String, u64)> = run.stalls.iter().zip(of.stalls.iter().copied()).collect();
    causes.retain(|&(_, cycles)| cycles as f64 >= LEAST * of.cycles as f64 && cycles > 0);
    causes.sort_by_key(|&(_, cycles)| std::cmp::Reverse(cycles));
    let texts = causes.iter().take(CAUSES).map(|(name, cycles)| {
        format!("{} {:.0} %", crate::annotate::short(name), 100.0 * *cycles as f64 / of.cycles as f64)
    });
    let text = texts.collect::<Vec<_>>().join(", ");
    (!text.is_empty()).then(|| Row::of_texts(name(of), [text]))
}

/// The largest cause of a loop's own cycles, if it has an essential part of the run's.
fn limits(run: &Run, hot: &HotLoop) -> Option<Row> {
    let limit = limits_of(run, hot).into_iter().next()?;
    let evidence = limit.evidence.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    let values = [Value::text(limit.title), Value::number(limit.share, "ratio"), Value::text(evidence)];
    Some(Row { label: name(hot.of), values: values.map(Some).into() })
}

/// What limits a loop; not judged for loops with hardly any cycles of their own.
fn limits_of(run: &Run, hot: &HotLoop) -> Vec<Limit> {
    if hot.own_share < LEAST_SHARE { Vec::new() } else { causes::of_loop(run, hot.index) }
}

/// Returns the loops of a run in the order of the record, for programs.
#[must_use]
pub fn json(run: &Run) -> Vec<Json> {
    let mut hot = hottest(run);
    hot.sort_by_key(|hot| hot.index);
    let totals = crate::calls::cycles_of_loops(run);
    hot.iter().map(|hot| json_loop(run, hot, totals.as_ref().map(|totals| totals[hot.index]))).collect()
}

/// `total` has its cycles with the functions that it calls.
fn json_loop(run: &Run, hot: &HotLoop, total: Option<u64>) -> Json {
    let of = hot.of;
    let traffic = Traffic::of(run, of);
    let point = roofline(run, of);
    json!({
        "function": of.function,
        "file": run.files.get(of.file as usize).map(|file| &file.path),
        "address": of.address,
        "offset": of.offset,
        "source": of.source.as_ref().map(|lines| json!({"file": lines.file, "first": lines.first, "last": lines.last})),
        "parent": of.parent,
        "depth": hot.depth,
        "size": of.size,
        "iterations": of.iterations,
        "entries": of.entries,
        "trips": of.trips(),
        "instructions": of.instructions,
        "cycles": of.cycles,
        "own_cycles": of.own_cycles,
        "total_cycles": total,
        "share": hot.share,
        "own_share": hot.own_share,
        "ipc": of.ipc(),
        "limits": json::limits(&limits_of(run, hot)),
        "stalls": crate::annotate::json_counts(&run.stalls, &of.stalls),
        "pipes": crate::annotate::json_counts(&run.pipes, &of.pipes),
        "events": crate::annotate::json_counts(&run.profile.events, &of.events),
        "flop": of.arithmetic.operations,
        "vector_bits": of.arithmetic.vector_bits(),
        "active_elements": of.arithmetic.active(),
        "bytes": {"l1": traffic.l1, "l2": traffic.l2, "memory": traffic.memory},
        "gflops": point.map(|point| point.gflops),
        "intensity": point.map(|point| json!({"l1": point.l1, "l2": point.l2, "memory": point.memory})),
    })
}

/// Returns the loops of runs as CSV, one per line after a header line, with the number of the run counted from 1.
#[must_use]
pub fn to_csv(runs: &[Run]) -> Vec<u8> {
    let mut out = String::new();
    csv::line(&mut out, &COLUMNS);
    for (number, run) in (1..).zip(runs) {
        let mut hot = hottest(run);
        hot.sort_by_key(|hot| hot.index);
        let totals = crate::calls::cycles_of_loops(run);
        for hot in &hot {
            let fields = fields(run, number, hot, totals.as_ref().map(|totals| totals[hot.index]));
            csv::line(&mut out, &fields.each_ref().map(String::as_str));
        }
    }
    out.into_bytes()
}

fn fields(run: &Run, number: usize, hot: &HotLoop, total: Option<u64>) -> [String; COLUMNS.len()] {
    let of = hot.of;
    let (traffic, point) = (Traffic::of(run, of), roofline(run, of));
    let known = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let source = of.source.as_ref();
    [
        number.to_string(),
        hot.index.to_string(),
        of.parent.map_or_else(String::new, |parent| parent.to_string()),
        hot.depth.to_string(),
        of.function.clone(),
        format!("{:#x}", of.address),
        source.map_or_else(String::new, |lines| lines.file.clone()),
        source.map_or_else(String::new, |lines| lines.first.to_string()),
        source.map_or_else(String::new, |lines| lines.last.to_string()),
        of.iterations.to_string(),
        of.entries.map_or_else(String::new, |entries| entries.to_string()),
        known(of.trips()),
        of.instructions.to_string(),
        of.cycles.to_string(),
        of.own_cycles.to_string(),
        total.map_or_else(String::new, |total| total.to_string()),
        hot.share.to_string(),
        hot.own_share.to_string(),
        known(of.ipc()),
        of.arithmetic.operations.to_string(),
        known(of.arithmetic.vector_bits()),
        known(of.arithmetic.active()),
        traffic.l1.to_string(),
        known(traffic.l2),
        known(traffic.memory),
        known(point.and_then(|point| point.memory)),
        limits_of(run, hot).into_iter().next().map_or_else(String::new, |limit| limit.rule),
    ]
}
