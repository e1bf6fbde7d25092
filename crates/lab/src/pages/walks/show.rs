//! Page walks and the gain of large pages, for people and programs.

use fxscope_hostinfo::memory::{Host, size};
use fxscope_report::document::{Document, Section};
use serde_json::{Value as Json, json};

use super::ab::Measured;
use super::estimate::{Basis, Estimate};
use super::{Question, Source, error, events};

/// Least gain that is worth a change, as a share of the time.
const WORTH: f64 = 0.01;
/// Width of an interval that says little, as a share of the time.
const WIDE: f64 = 0.1;

pub(super) fn json(estimate: Option<&Estimate>, measured: Option<&Measured>) -> Json {
    json!({
        "estimate": estimate,
        "measured": measured,
        "error": estimate.zip(measured).map(|(estimate, measured)| error(estimate, measured)),
    })
}

pub(super) fn document(
    question: &Question,
    host: &Host,
    estimate: Option<&Estimate>,
    measured: Option<&Measured>,
) -> Document {
    let elsewhere = matches!(question.source, Some(Source::File(_))) && measured.is_none();
    let mut sections = vec![Section::notes("Advice", advice(host, elsewhere, estimate, measured))];
    sections.extend(estimate.map(|estimate| Section::facts("Walks", walks(estimate))));
    sections.extend(measured.map(|measured| Section::facts("Measured", pairs(measured))));
    sections.push(Section::notes("Notes", notes(question, estimate, measured)));
    Document::of("Large pages for a program on its own computer", sections)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn range([least, most]: [f64; 2]) -> String {
    format!("{:.1} to {}", 100.0 * least, percent(most))
}

/// The advice: what large pages save, and how the program gets them.
fn advice(host: &Host, elsewhere: bool, estimate: Option<&Estimate>, measured: Option<&Measured>) -> Vec<String> {
    let mut lines = Vec::new();
    let [_, most] = match (measured, estimate) {
        (Some(measured), _) => {
            let (saving, interval) = (measured.saving, measured.interval);
            lines.push(gain(saving, interval));
            interval
        }
        (None, Some(estimate)) => {
            lines.push(format!(
                "Large pages (THP) would save {} of the cycles in page walks, page faults aside.",
                range(estimate.saving)
            ));
            estimate.saving
        }
        (None, None) => return lines,
    };
    let uncertain = measured.is_some_and(|measured| measured.interval[0] <= 0.0);
    if most < WORTH {
        lines.push("Leave the pages as they are: this is too little to be worth a change.".to_owned());
    } else if uncertain {
        lines.push(
            "Measure again while nothing else runs here, or with more --pairs, before you change anything.".to_owned(),
        );
    } else if estimate.is_some_and(|estimate| estimate.small.is_some_and(|small| small < 0.1)) {
        lines.push(
            "Most walks end at large pages already; only still larger ones (hugetlbfs with 1 GiB) could save them."
                .to_owned(),
        );
    } else {
        lines.extend(knobs(host, elsewhere));
    }
    lines
}

fn gain(saving: f64, [low, high]: [f64; 2]) -> String {
    let interval = format!("(95 % interval of the median: {})", range([low, high]));
    if low > 0.0 {
        format!("Large pages (THP) save {} of the time {interval}.", percent(saving))
    } else if high < 0.0 {
        format!("Large pages (THP) cost {} of the time {interval}.", percent(-saving))
    } else {
        format!("No certain effect of large pages (THP): {} of the time {interval}.", percent(saving))
    }
}

/// Ways to large pages, the least intrusive first.
fn knobs(host: &Host, elsewhere: bool) -> Vec<String> {
    let enabled = host.thp.as_ref().and_then(|thp| thp.enabled.as_deref()).filter(|_| !elsewhere);
    let malloc = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1, for this program alone: malloc of glibc 2.35 and later asks for large pages. \
                  Memory that the program maps itself needs madvise(MADV_HUGEPAGE).";
    let setting = "/sys/kernel/mm/transparent_hugepage/enabled";
    let mut lines = match enabled {
        Some("always") => vec![format!(
            "THP is always here: private memory gets large pages where they fit. What still walks at base pages lies in blocks smaller than a \
             page, in files, or in memory that was fragmented when it was touched (`fxscope pages host --pid N` shows the mappings)."
        )],
        Some("madvise") => {
            vec![format!("Set {malloc}"), format!("Or, for all programs, as root: echo always > {setting}")]
        }
        Some("never") => vec![format!("As root: echo madvise > {setting}; then set {malloc}")],
        _ => vec![format!("With THP at madvise or always ({setting}), set {malloc}")],
    };
    let pools = host.pools.iter().filter(|pool| !elsewhere && pool.free.unwrap_or(0) > 0);
    let free =
        pools.map(|pool| format!("{} of {}", pool.free.unwrap_or(0), size(pool.page))).collect::<Vec<_>>().join(", ");
    let here =
        if free.is_empty() { "reserve some first (vm.nr_hugepages)".to_owned() } else { format!("free here: {free}") };
    lines.push(format!(
        "If the kernel finds no large pages for THP: glibc.malloc.hugetlb=2 takes those of hugetlbfs instead ({here}); they are reserved and \
         cannot be swapped."
    ));
    lines
}

fn walks(estimate: &Estimate) -> Vec<(String, String)> {
    let name = events::named(&estimate.processor).map_or_else(|_| estimate.processor.clone(), |one| one.name.clone());
    let mut facts = vec![("processor".to_owned(), name), ("cycles".to_owned(), format!("{:.0}", estimate.cycles))];
    facts.push(("in walks for data".to_owned(), format!("up to {} of the cycles", percent(estimate.data_walks))));
    facts.extend(estimate.code_walks.map(|code| ("in walks for instructions".to_owned(), percent(code))));
    facts.extend(estimate.walks.map(|walks| ("walks for data".to_owned(), format!("{walks:.0}"))));
    facts.extend(estimate.small.map(|small| ("of them at base pages".to_owned(), percent(small))));
    facts.extend(estimate.walk_cycles.map(|([least, most], basis)| {
        let basis = match basis {
            Basis::Given => "given",
            Basis::Measured => "measured on this host",
            Basis::Assumed => "assumed",
        };
        ("cycles of a walk".to_owned(), format!("{least:.0} to {most:.0}, {basis}"))
    }));
    facts
}

fn pairs(measured: &Measured) -> Vec<(String, String)> {
    let median = |times: &[f64]| {
        let mut sorted = times.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        format!("{:.3} s", f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2]))
    };
    let mut facts = vec![
        ("pairs".to_owned(), measured.small.len().to_string()),
        ("without large pages".to_owned(), median(&measured.small)),
        ("with large pages".to_owned(), median(&measured.large)),
    ];
    facts.extend(measured.large_bytes.map(|bytes| ("in large pages".to_owned(), format!("up to {}", size(bytes)))));
    facts
}

fn notes(question: &Question, estimate: Option<&Estimate>, measured: Option<&Measured>) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(estimate) = estimate {
        notes.extend(about_estimate(estimate));
        if question.source.is_some() && measured.is_none() {
            notes.push(
                "--check measures the gain on this computer, with pairs of runs without and with large pages, and the error of this estimate."
                    .to_owned(),
            );
        }
    }
    if let Some(measured) = measured {
        notes.push(
            "Measured: the whole program's time in runs in turn without large pages (PR_SET_THP_DISABLE) and with them \
             (glibc.malloc.hugetlb=1), page faults included."
                .to_owned(),
        );
        if measured.interval[1] - measured.interval[0] > WIDE {
            notes.push(
                "The interval is wide: other programs disturb this computer, or the program's own time varies."
                    .to_owned(),
            );
        }
        if measured.large_bytes == Some(0) {
            notes.push(
                "The program got no large pages in a run with them: it may not use glibc's malloc, be too short or small, or have set \
                 GLIBC_TUNABLES itself. The measurement says nothing about large pages."
                    .to_owned(),
            );
        }
    }
    notes.extend(estimate.zip(measured).map(|(estimate, measured)| match error(estimate, measured) {
        0.0 => "The measured median is within the range of the estimate.".to_owned(),
        error => format!("The measured median is {:+.1} points from the range of the estimate.", 100.0 * error),
    }));
    notes
}

fn about_estimate(estimate: &Estimate) -> Vec<String> {
    let [least, most] = estimate.saving.map(percent);
    let mut notes = vec![
        format!("At least {least}: {}.", estimate.least),
        format!("At most {most}: {}.", estimate.most),
        "The estimate is of walks alone. Large pages also save page faults and cost time to clear memory that is never used, which it does not \
         contain; some walks remain with them. Walks to base and to large pages are taken as equally long."
            .to_owned(),
    ];
    if let Some(faults) = estimate.faults.filter(|&faults| faults > 0) {
        notes.push(format!(
            "{faults} page faults: with large pages, memory that a program fills for the first time has few, which can save more than walks do. \
             --check measures both."
        ));
    }
    if estimate.small.is_none() {
        notes
            .push("Page sizes were not counted: if some memory has large pages already, less can be saved.".to_owned());
    }
    if let Some((_, Basis::Assumed)) = estimate.walk_cycles {
        let why = events::named(&estimate.processor).ok().and_then(|one| one.why.clone()).unwrap_or_default();
        notes.push(format!(
            "The cycles of a walk are assumed, since {why}: give them with --walk-cycles LEAST,MOST, or run the program here with --perf, \
             which measures them."
        ));
    }
    notes
}
