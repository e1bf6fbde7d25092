//! Reports of runs, for people and programs.
//!
//! Sections turn runs into a [`document::Document`] and know no output format; renderers turn documents into text and
//! know no metrics. The JSON form is the run itself with its metrics.

pub mod annotate;
pub mod calls;
pub mod causes;
pub mod compare;
pub mod data;
pub mod document;
mod evaluate;
pub mod export;
pub mod loops;
mod options;
pub mod own;
pub mod parallel;
pub mod reference;
pub mod render;
mod sections;
pub mod sheet;
mod shown;
pub mod validation;
pub mod verdict;

pub use options::{By, Level, Options};
pub use render::quantity::digits;
pub use shown::{Shown, documents, reports};

use std::borrow::Cow;

use fxscope_pmu::{Evaluation, Sampled, Values};
use fxscope_record::{ALL, Region, Run};
use rayon::prelude::*;

use document::{Body, Document, RegionReport, Report, Section};
use evaluate::Evaluated;
use verdict::Hottest;

/// Maximum number of marked regions shown in full.
const FULL_REGIONS: usize = 3;

/// A run and a region of it: a column of a report.
pub(crate) struct Column<'a> {
    pub run: &'a Run,
    pub region: &'a Region,
    pub evaluation: Evaluation<'a>,
    pub values: Values,
    /// How well they are known, in a sampled run.
    pub sampled: Option<Sampled>,
}

impl<'a> Column<'a> {
    fn new(run: &'a Run, region: &'a Region) -> Column<'a> {
        let evaluation = Evaluation::new(run, region);
        let values = evaluation.total();
        let sampled = Sampled::of(run, region);
        Column { run, region, evaluation, values, sampled }
    }
}

/// Returns the summary of a run: the verdict and the main numbers of the whole run, then those of each marked region, or a table of them
/// if there are many.
#[must_use]
pub fn summary(run: &Run) -> Vec<Document> {
    summary_with(run, verdict::hottest_functions)
}

/// Returns the summary of a run, with the hottest places that `hottest` finds.
#[must_use]
pub fn summary_with(run: &Run, hottest: Hottest) -> Vec<Document> {
    let (whole, marked): (Vec<_>, Vec<_>) = run.regions.iter().partition(|r| r.name == ALL);
    let mut documents = Vec::new();
    // Measurements may have only marked regions.
    if whole.is_empty() {
        let sections = run.regions.first().map(|region| sections::of_run(&[Column::new(run, region)]));
        let sections = sections.unwrap_or_default();
        documents.push(Document { title: sections::title(run), columns: Vec::new(), sections });
    }
    for (i, region) in whole.into_iter().enumerate() {
        let columns = [Column::new(run, region)];
        let mut sections: Vec<_> =
            sections::verdict::section(run, region, &columns[0].evaluation, hottest).into_iter().collect();
        sections.extend(sections::ranks::sections(run));
        sections.extend(sections::of_region(&columns));
        sections.extend(sections::of_run(&columns));
        let title = if i == 0 { sections::title(run) } else { sections::plain(&region.name) };
        documents.push(Document { title, columns: vec![sections::plain(&region.name)], sections });
    }
    if marked.len() > FULL_REGIONS {
        let columns: Vec<_> = marked.into_iter().map(|region| Column::new(run, region)).collect();
        let sections = vec![sections::regions::section(&columns)];
        documents.push(Document { title: "Marked regions".to_owned(), columns: Vec::new(), sections });
    } else {
        documents.extend(marked.into_iter().map(|region| region_summary(run, region, hottest)));
    }
    documents
}

/// Returns the summary of a region of a run: the verdict and the main numbers.
///
/// # Errors
/// If the run has no region of this name.
pub fn summary_of_region(run: &Run, name: &str, hottest: Hottest) -> Result<Document, String> {
    Ok(region_summary(run, find(run, name)?, hottest))
}

fn region_summary(run: &Run, region: &Region, hottest: Hottest) -> Document {
    let column = Column::new(run, region);
    let mut sections: Vec<_> =
        sections::verdict::section(run, region, &column.evaluation, hottest).into_iter().collect();
    sections.extend(sections::of_region(&[column]));
    let title = sections::plain(&format!("Region {} ({})", region.name, document::calls(region.calls)));
    Document { title, columns: vec![sections::plain(&region.name)], sections }
}

/// Returns the full report of a run: its regions with their tables and charts.
///
/// # Errors
/// If the run has no region of the requested name.
pub fn report(run: &Run, options: &Options) -> Result<Report, String> {
    let whole = run.region(ALL).or(run.regions.first()).map(|region| [Column::new(run, region)]);
    let mut sections = whole.as_ref().map(|whole| sections::of_run(whole)).unwrap_or_default();
    if let (Some([whole]), Level::Detailed) = (&whole, options.level) {
        sections.extend(sections::not_modelled(whole));
    }
    let whole = run;
    let run = &*at_level(run, options.level);
    let regions = regions(run, options)?;
    Ok(Report {
        title: sections::title(run),
        label: String::new(),
        settings: run.settings.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" "),
        sections,
        regions: regions.into_par_iter().map(|region| of_region(whole, (run, region), options)).collect(),
    })
}

/// Checks that all runs have the requested region.
///
/// # Errors
/// Which run lacks it, and which regions it has.
pub fn check(runs: &[Run], options: &Options) -> Result<(), String> {
    runs.iter().try_for_each(|run| regions(run, options).map(|_| ()))
}

/// Returns the part of a run that a measurement of this level has.
pub(crate) fn at_level(run: &Run, level: Level) -> Cow<'_, Run> {
    if level == Level::Detailed { Cow::Borrowed(run) } else { Cow::Owned(evaluate::at_level(run, level)) }
}

/// Returns the requested regions of a run.
pub(crate) fn regions<'a>(run: &'a Run, options: &Options) -> Result<Vec<&'a Region>, String> {
    Ok(match &options.region {
        Some(name) => vec![find(run, name)?],
        None => run.regions.iter().collect(),
    })
}

/// The report of a region of a run that has what a level shows. The verdict takes all that was counted: `whole` has it.
fn of_region(whole: &Run, (run, region): (&Run, &Region), options: &Options) -> RegionReport {
    let evaluated = Evaluated::of(run, region, options);
    let verdict = whole
        .region(&region.name)
        .and_then(|region| sections::verdict::section(whole, region, &Evaluation::new(whole, region), options.hottest));
    let mut sections: Vec<_> = verdict.into_iter().collect();
    if region.name == ALL {
        sections.extend(loops::hottest_section(run));
        sections.extend(sections::ranks::sections(run));
    }
    sections.extend(sections::head(&evaluated));
    sections.extend(sections::stack::section(&evaluated));
    sections.extend(sections::gauges::section(&evaluated));
    sections.extend(sections::roofline::section(run, region, &evaluated));
    sections.extend(sections::traffic::sections(run, &evaluated));
    sections.extend(sections::pages::tiering(region));
    sections.extend(sections::tables::sections(&evaluated));
    if region.name == ALL {
        sections.extend(sections::power::plots(run));
        let is_table = |section: &Section| matches!(section.body, Body::Table { .. });
        let of_loops = if run.profile.loops.is_empty() { Vec::new() } else { loops::sections(run) };
        sections.extend(calls::sections(run).into_iter().chain(of_loops).filter(is_table));
    }
    RegionReport { name: sections::plain(&region.name), calls: region.calls, sections }
}

/// The region of a run to compare with other runs.
fn choose<'a>(run: &'a Run, name: Option<&str>) -> Result<&'a Region, String> {
    match (name, &run.regions[..]) {
        (Some(name), _) => find(run, name),
        (None, [only]) => Ok(only),
        (None, _) => find(run, ALL).map_err(|e| format!("{e}; choose one with --region")),
    }
}

/// The region of a run.
fn find<'a>(run: &'a Run, name: &str) -> Result<&'a Region, String> {
    run.region(name).ok_or_else(|| {
        let names: Vec<_> = run.regions.iter().map(|r| r.name.as_str()).collect();
        format!("{} has no region '{name}'; it has {}", sections::program(run), names.join(", "))
    })
}

/// Returns the power of each CMG and, by intervals of time, of the chip; `None` if the record has not what power follows from.
#[must_use]
pub fn power(run: &Run) -> Option<Document> {
    let sections: Vec<_> = sections::power::by_cmg(run).into_iter().chain(sections::power::tables(run)).collect();
    (!sections.is_empty()).then(|| Document { title: sections::title(run), columns: Vec::new(), sections })
}

/// Returns the pages of a run; `None` if the record lacks them.
#[must_use]
pub fn pages(run: &Run) -> Option<Document> {
    let tiering = run.region(ALL).and_then(sections::pages::tiering);
    let sections = std::iter::once(sections::pages::section(run)).chain(tiering).collect();
    (!run.pages.is_empty()).then(|| Document { title: sections::title(run), columns: Vec::new(), sections })
}

/// Returns several runs side by side, one column each, for one region of each: the named one, otherwise the whole run,
/// or the only region of a measurement without a whole. Columns are numbered if programs have the same name.
///
/// # Errors
/// If a run has no such region.
pub fn side_by_side(runs: &[Run], region: Option<&str>) -> Result<Document, String> {
    let regions: Vec<&Region> = runs.iter().map(|run| choose(run, region)).collect::<Result<_, _>>()?;
    let columns: Vec<_> = runs.iter().zip(&regions).map(|(run, region)| Column::new(run, region)).collect();
    let mut sections = sections::of_region(&columns);
    sections.extend(sections::of_run(&columns));
    let mut names: Vec<String> = runs.iter().map(sections::program).collect();
    if (1..names.len()).any(|i| names[..i].contains(&names[i])) {
        names = names.iter().enumerate().map(|(i, name)| format!("{} {name}", i + 1)).collect();
    }
    let mut shown: Vec<String> = regions.iter().map(|region| sections::plain(&region.name)).collect();
    shown.dedup();
    Ok(Document { title: format!("Region {}", shown.join(" and ")), columns: names, sections })
}
