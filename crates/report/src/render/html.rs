//! Reports as a self-contained page: no network, no other files.

mod annotation;
mod answers;
mod chart;
mod experiment;
mod fold;
mod guide;
mod library;
mod overview;
mod plain;
mod sheet;
mod summary;
mod table;
mod validation;

use std::collections::BTreeMap;
use std::io::Write as _;

use base64::Engine as _;
use flate2::Compression;
use flate2::write::GzEncoder;
use maud::{DOCTYPE, Markup, PreEscaped, html};

pub use annotation::draw as annotation;
pub use experiment::draw as experiment;
pub use guide::{GuideChapter, GuideEntry, GuidePage, index as guide_index, page as guide_page};
pub use sheet::draw as sheet;
pub(super) use sheet::of_few;
pub use validation::draw as validation;

use super::palette;
use crate::document::{Body, RegionReport, Report, Section, calls};
use overview::Line;
use table::{Form, Heads};

const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/page.js");
/// Packed bytes for which the page, below 2 MB, has room beside the library that draws charts.
const ROOM: usize = 850_000;
/// Packed size from which no region is added: the compressor buffers some bytes that are not counted yet.
const FULL: usize = 980_000;
/// Maximum packed size of a region without threads.
const SHORT: usize = 7_000;
/// Separator between packed regions.
const SEPARATOR: &[u8] = b"\x1e";
/// Regions up to which their list is open at first.
const FEW: usize = 12;
/// The column with a region's time.
const TIME: &str = "A01";

/// A region's index, its report, and the region's report.
type Shown<'a> = (usize, &'a Report, &'a RegionReport);

/// Returns a page with a choice of all regions of all reports.
///
/// # Panics
/// Never: compression goes to memory.
#[must_use]
pub fn render(reports: &[Report]) -> String {
    let regions: Vec<Shown> =
        (1..).zip(reports).flat_map(|(n, r)| r.regions.iter().map(move |region| (n, r, region))).collect();
    let mut heads = Heads::default();
    let Packed { text, places, short } = pack(regions.get(1..).unwrap_or_default(), &mut heads);
    let title = reports.first().map_or("fxscope report", |r| r.title.as_str());
    let name = |&(number, report, region): &Shown| {
        if reports.len() > 1 { format!("{number} {}: {}", report.title, region.name) } else { region.name.clone() }
    };
    let choice = |i: usize| if i == 0 { Some(0) } else { places.get(&(i - 1)).map(|place| place + 1) };
    let lines = |on_page: bool| {
        let others = regions.iter().enumerate().skip(1).filter(|&(i, _)| choice(i).is_some() == on_page);
        others.map(|(i, shown)| Line { name: name(shown), region: shown.2, choice: choice(i) }).collect::<Vec<_>>()
    };
    let (on_page, left_out) = (lines(true), lines(false));
    let state = if on_page.len() > FEW { fold::State::Closed } else { fold::State::Open };
    let list = if on_page.is_empty() {
        html! {}
    } else {
        overview::draw("Regions", on_page, state)
    };
    let first = regions.first().map(|(_, report, region)| fragment(report, region, Form::Whole, &mut heads, &list));
    let choices = regions.iter().enumerate().filter_map(|(i, region)| Some((choice(i)?, name(region))));
    let has_charts = regions.iter().any(|(_, _, region)| region.sections.iter().any(is_drawn));
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(title, &palette::rules()))
            body {
                header {
                    h1 { (title) }
                    @if regions.len() > 1 { (chooser(choices)) }
                }
                main id="main" { @if let Some(first) = first { (first) } }
                footer {
                    @if short > 0 {
                        p { (short) " of the regions, those with the least time, have no rows for threads on this page, to limit its size; "
                            code { "fxscope report --region NAME" } " shows them." }
                    }
                    @if !left_out.is_empty() {
                        p { (left_out.len()) " further regions, with less time than all in the list, are only in the table below; "
                            code { "fxscope report --region NAME" } " shows one of them in full, " code { "--format csv" } " everything." }
                        (overview::draw("Further regions", left_out, fold::State::ScreenOnly))
                    }
                    p { "Made by fxscope." }
                    @if has_charts { (library::licenses()) }
                }
                @if regions.len() > 1 {
                    (heads.templates())
                    script type="application/gzip" id="packed" { (PreEscaped(text)) }
                }
                @if has_charts { (library::scripts()) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

/// The head of a page; `rules` are added to the common style rules.
fn head(title: &str, rules: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            // Browsers request an icon from the network unless the page has one.
            link rel="icon" href="data:,";
            title { (title) }
            style { (PreEscaped(STYLE)) (PreEscaped(rules)) }
        }
    }
}

/// A choice of regions: index and name of each.
fn chooser(choices: impl Iterator<Item = (usize, String)>) -> Markup {
    html! {
        nav aria-label="Regions" {
            label for="region" { "Region" }
            select id="region" autocomplete="off" { @for (place, name) in choices { option value=(place) { (name) } } }
            noscript { p { "Regions other than the first require JavaScript." } }
        }
    }
}

/// Regions packed into the page.
struct Packed {
    /// Their text.
    text: String,
    /// Position of each in the text, by its index among all regions.
    places: BTreeMap<usize, usize>,
    /// Number of regions without rows for threads.
    short: usize,
}

/// Packs regions by descending time, later ones without rows for threads, while there is room.
fn pack(regions: &[Shown], heads: &mut Heads) -> Packed {
    let mut packer = GzEncoder::new(Vec::new(), Compression::new(4));
    let (mut places, mut short) = (BTreeMap::new(), 0);
    let mut order: Vec<usize> = (0..regions.len()).collect();
    order.sort_by(|&a, &b| seconds(regions[b].2).total_cmp(&seconds(regions[a].2)));
    for (done, &i) in order.iter().enumerate() {
        let (_, report, region) = regions[i];
        let used = packer.get_ref().len();
        if used + SHORT > FULL {
            break;
        }
        // A quarter of the room is reserved for full regions.
        let rest = (SHORT * (regions.len() - done)).min(ROOM / 4 * 3);
        let form = if used + rest > ROOM { Form::Short } else { Form::Shared };
        short += usize::from(form == Form::Short);
        let text = fragment(report, region, form, heads, &html! {}).into_string();
        let separator = if done > 0 { SEPARATOR } else { &[] };
        packer.write_all(separator).and_then(|()| packer.write_all(text.as_bytes())).expect("written to memory");
        places.insert(i, done);
    }
    let text = base64::engine::general_purpose::STANDARD.encode(packer.finish().expect("written to memory"));
    Packed { text, places, short }
}

/// The time of a region; 0 if unknown.
fn seconds(region: &RegionReport) -> f64 {
    overview::value(region, TIME).unwrap_or(0.0)
}

/// One region: answers, charts, then tables that can be folded. `list` has the other regions.
fn fragment(report: &Report, region: &RegionReport, form: Form, heads: &mut Heads, list: &Markup) -> Markup {
    let calls = calls(region.calls);
    let (charts, others): (Vec<_>, Vec<_>) =
        region.sections.iter().filter(|s| !answers::has(s)).partition(|s| is_chart(s));
    let (tables, words): (Vec<_>, Vec<_>) = others.into_iter().partition(|s| is_table(s));
    let (facts, notes): (Vec<_>, Vec<_>) = words.into_iter().partition(|s| matches!(s.body, Body::Facts(_)));
    let matrices = charts.iter().filter_map(|section| match &section.body {
        Body::Matrix(matrix) => Some(chart::most(matrix)),
        _ => None,
    });
    let most = matrices.fold(0.0, f64::max);
    // Without a verdict, notes and tables are the answers.
    let has_verdict = region.sections.iter().any(|s| matches!(s.body, Body::Verdict(_)));
    let state = if has_verdict { fold::State::Closed } else { fold::State::Open };
    html! {
        h2 { "Region " (region.name) " " span.soft { "(" (calls) ")" } }
        @for section in notes { (plain::draw(section)) }
        (answers::draw(region, list))
        @if !charts.is_empty() {
            h2 { "Charts" }
            div.charts { @for section in charts { (draw_chart(section, form, most)) } }
        }
        h2 { "Tables" }
        (fold::buttons())
        @if !facts.is_empty() {
            @let body = html! { @for section in &facts { (plain::draw(section)) } };
            (fold::draw("Main numbers", &summary::of_facts(&facts), state, &body))
        }
        @for section in tables {
            @match &section.body {
                Body::Grid(grid) => (table::draw(&section.title, grid, form, heads)),
                _ => (plain::folded(section, state)),
            }
        }
        @let body = html! { @for section in &report.sections { (plain::draw(section)) } };
        @if !report.sections.is_empty() { (fold::draw("The run", &report.title, state, &body)) }
    }
}

fn is_chart(section: &Section) -> bool {
    is_drawn(section) || matches!(section.body, Body::Gauges(_) | Body::Matrix(_))
}

/// Returns whether the library draws a section.
fn is_drawn(section: &Section) -> bool {
    matches!(section.body, Body::Stack(_) | Body::Roofline(_) | Body::Curves(_))
}

fn is_table(section: &Section) -> bool {
    matches!(section.body, Body::Grid(_) | Body::Table { .. } | Body::Listing { .. })
}

/// A chart; `most` is the largest value of all matrices of its region.
fn draw_chart(section: &Section, form: Form, most: f64) -> Markup {
    let title = &section.title;
    match &section.body {
        Body::Stack(stack) if form == Form::Short => chart::stack(title, &stack.without_threads()),
        Body::Stack(stack) => chart::stack(title, stack),
        Body::Gauges(gauges) => chart::gauges(title, gauges),
        Body::Roofline(roofline) => chart::roofline(title, roofline),
        Body::Matrix(matrix) => chart::heat(title, matrix, most),
        Body::Curves(plot) => chart::curves(plot),
        _ => plain::draw(section),
    }
}
