//! What is shown of several runs on a terminal.

use fxscope_record::Run;

use crate::document::{Document, Report};
use crate::{Options, calls, data, loops, pages, power, report, side_by_side, summary_of_region, summary_with};

/// What is shown of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// A summary of one run, or several runs side by side.
    Summary,
    /// The tables of each run.
    Tables,
    /// The pages of each run.
    Pages,
    /// The traffic between CMGs, by region.
    Traffic,
    /// The loops.
    Loops,
    /// Functions with those that they call.
    Calls,
    /// Data objects.
    Data,
    /// The power of each CMG and, over time, of the chip.
    Power,
}

/// Returns the documents that show runs. `labels` are the names of the runs; those without one have an empty one.
///
/// # Errors
/// If a run does not have the region, or no run has what would be shown; the message says what to record.
pub fn documents(runs: &[Run], labels: &[String], shown: Shown, options: &Options) -> Result<Vec<Document>, String> {
    let of_each = |document: fn(&Run) -> Option<Document>| runs.iter().filter_map(document).collect();
    let tables = || Ok::<_, String>(reports(runs, labels, options)?.into_iter().flat_map(Report::documents));
    match shown {
        Shown::Pages => some(of_each(pages), "data on pages", ""),
        Shown::Data => some(of_each(data::document), "data objects", "--data "),
        Shown::Power => some(of_each(power), "power", "--mode timing "),
        Shown::Calls => some(of_each(calls::document), "data on calls", ""),
        Shown::Loops => some(of_each(loops::document), "data on loops", ""),
        Shown::Traffic => some(tables()?.filter_map(Document::matrices).collect(), "data on traffic between CMGs", ""),
        Shown::Tables => Ok(tables()?.collect()),
        Shown::Summary => summaries(runs, labels, options),
    }
}

/// Returns the reports of runs with these labels.
///
/// # Errors
/// If a run does not have the region.
pub fn reports(runs: &[Run], labels: &[String], options: &Options) -> Result<Vec<Report>, String> {
    let mut reports = runs.iter().map(|run| report(run, options)).collect::<Result<Vec<_>, _>>()?;
    for (report, label) in reports.iter_mut().zip(labels).filter(|(_, label)| !label.is_empty()) {
        report.title = format!("{label}: {}", report.title);
        report.label.clone_from(label);
    }
    Ok(reports)
}

/// Returns the summary of one run, or several runs side by side.
fn summaries(runs: &[Run], labels: &[String], options: &Options) -> Result<Vec<Document>, String> {
    match (runs, &options.region) {
        ([run], None) => Ok(summary_with(run, options.hottest)),
        ([run], Some(region)) => Ok(vec![summary_of_region(run, region, options.hottest)?]),
        (runs, region) => {
            let mut document = side_by_side(runs, region.as_deref())?;
            for (column, label) in document.columns.iter_mut().zip(labels).filter(|(_, label)| !label.is_empty()) {
                column.clone_from(label);
            }
            Ok(vec![document])
        }
    }
}

/// Returns the documents, or an error that names what is missing if there are none; `options` of a run make it.
fn some(documents: Vec<Document>, what: &str, options: &str) -> Result<Vec<Document>, String> {
    if documents.is_empty() {
        return Err(format!("the files have no {what}; add a run with fxscope run {options}-o FILE.fxr"));
    }
    Ok(documents)
}
