//! The sections of a report. They select metrics by name and know no output format.

mod accounting;
mod facts;
pub(crate) mod gauges;
mod missing;
mod notes;
pub(crate) mod pages;
pub(crate) mod power;
pub(crate) mod ranks;
pub(crate) mod regions;
pub(crate) mod roofline;
mod sampled;
mod simulator;
pub(crate) mod stack;
pub(crate) mod tables;
pub(crate) mod traffic;
pub(crate) mod verdict;

use std::path::Path;

use fxscope_record::{Finish, Mode, Origin, Run};

use crate::Column;
use crate::document::{Body, Section};
use crate::evaluate::Evaluated;
use facts::Known;

/// Returns the sections about regions, without empty ones.
pub(crate) fn of_region(columns: &[Column]) -> Vec<Section> {
    let values: Vec<Known> = columns.iter().map(Known::of).collect();
    let all = [
        facts::section("Run", facts::RUN, &values),
        facts::rates(&values),
        accounting::section(columns),
        facts::section("Misses", facts::MISSES, &values),
        facts::section("Busy", facts::BUSY, &values),
        facts::section("Power", facts::POWER, &values),
    ];
    all.into_iter().chain(facts::own(&values)).filter(has_content).collect()
}

/// Returns the first sections of a region's report: what its tables and charts do not show at a glance.
pub(crate) fn head(evaluated: &Evaluated) -> Vec<Section> {
    let values = &[Known { values: &evaluated.evaluation.total(), sampled: evaluated.sampled.as_ref() }];
    let all = [
        facts::section("Run", facts::RUN, values),
        facts::rates(values),
        facts::section("Misses", facts::MISSES, values),
        facts::section("Power", facts::POWER, values),
    ];
    all.into_iter().chain(facts::own(values)).filter(has_content).collect()
}

/// Returns the report columns that simulated runs never fill; `None` for measured runs.
pub(crate) fn not_modelled(column: &Column) -> Option<Section> {
    let simulated = column.run.origin == Origin::Simulated;
    simulated.then(|| missing::not_modelled(column)).filter(has_content)
}

/// Returns the sections about whole runs.
pub(crate) fn of_run(columns: &[Column]) -> Vec<Section> {
    [sampled::section(columns), simulator::section(columns), notes::section(columns), missing::section(columns)]
        .into_iter()
        .filter(has_content)
        .collect()
}

fn has_content(section: &Section) -> bool {
    match &section.body {
        Body::Facts(rows) | Body::Table { rows, .. } => !rows.is_empty(),
        Body::Parts(parts) => !parts.is_empty(),
        Body::Listing { lines, .. } => !lines.is_empty(),
        Body::Notes(notes) => !notes.is_empty(),
        _ => true,
    }
}

/// Returns the program's name without its folder or, for measurements without it, the name of the first file.
pub(crate) fn program(run: &Run) -> String {
    if let ([], Origin::Imported { files, .. }) = (&run.command[..], &run.origin)
        && let Some(file) = files.first()
    {
        return plain(&Path::new(file).file_name().map_or(file.as_str().into(), |name| name.to_string_lossy()));
    }
    let name = Path::new(run.subject()).file_name().map(|n| n.to_string_lossy().into_owned());
    plain(name.as_deref().unwrap_or(run.subject()))
}

/// Returns a program or file name without control characters.
pub(crate) fn plain(text: &str) -> String {
    fxscope_host::text::printable(text).into_owned()
}

/// Returns the program's name, or that of the ranks' program with their number.
fn subject(run: &Run) -> String {
    match run.parallel.processes.iter().filter(|process| process.rank.is_some()).count() {
        0 => program(run),
        1 => format!("1 rank of {}", program(run)),
        ranks => format!("{ranks} ranks of {}", program(run)),
    }
}

/// Returns what was run, where, and how it ended.
pub(crate) fn title(run: &Run) -> String {
    let settings: Vec<_> = run.settings.iter().map(|(key, value)| format!(", {key} = {value}")).collect();
    let mode = match (&run.origin, run.mode) {
        (Origin::Imported { format, .. }, _) => format!(", measured ({format})"),
        (Origin::Simulated, Mode::Timing) if run.sample.is_some() => ", sampled".to_owned(),
        (Origin::Simulated, Mode::Timing) => String::new(),
        (Origin::Simulated, Mode::Functional) => ", functional mode".to_owned(),
    };
    let part = run.part.as_ref().map_or_else(String::new, |part| format!(", {}", part.options));
    let finish = match &run.finish {
        Finish::Exited(code) => format!(": exit status {code}"),
        Finish::Unknown => String::new(),
        // The first line of a longer message; the rest was printed when the program ended.
        Finish::Killed { message, .. } | Finish::Failed(message) | Finish::NoProgress(message) => {
            format!(": {}", message.lines().next().unwrap_or(""))
        }
        Finish::Limit if run.part.as_ref().is_some_and(|part| part.ended) => {
            ": stopped at the end of the part".to_owned()
        }
        Finish::Limit => ": stopped at the instruction limit".to_owned(),
        Finish::Stopped => ": stopped by the user".to_owned(),
    };
    plain(&format!("{} on {}{}{mode}{part}{finish}", subject(run), run.machine, settings.concat()))
}
