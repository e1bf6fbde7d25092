//! Native charts, with their data on separate sheets.

use rust_xlsxwriter::{
    Chart, ChartFormat, ChartLegendPosition, ChartPoint, ChartSolidFill, ChartType, Color, Format, Workbook, Worksheet,
    XlsxError,
};

use super::Place;
use crate::document::{Body, Gauge, Stack};
use crate::render::palette;
use crate::render::scale::Scale;

/// Maximum number of regions with charts; tables have all regions.
const MOST: usize = 25;
const CHARTS: &str = "Charts";
const STACKS: &str = "Chart data, accounting";
const GAUGES: &str = "Chart data, busy";
/// Rows that the charts of a region occupy.
const ROWS: u32 = 28;

/// Returns the sheet of charts, and the sheets with their data.
pub fn sheets(book: &mut Workbook, places: &[Place]) -> Result<(), XlsxError> {
    let mut charts = Vec::new();
    let mut stacks = DataSheet::default();
    let mut gauges = DataSheet::default();
    for place in places.iter().take(MOST) {
        let title = format!("{} {}", place.run, place.region.name);
        let mut drawn = Vec::new();
        for section in &place.region.sections {
            match &section.body {
                Body::Stack(stack) => drawn.push(stack_chart(&title, stack, &mut stacks)),
                Body::Gauges(list) => drawn.push(gauge_chart(&title, list, &mut gauges)),
                _ => {}
            }
        }
        charts.push(drawn);
    }
    let sheet = book.add_worksheet();
    super::fit(sheet.set_name(CHARTS)?);
    for (row, drawn) in (0..).map(|i| 1 + i * ROWS).zip(&charts) {
        for (column, chart) in (0..).map(|i| i * 15).zip(drawn) {
            sheet.insert_chart(row, column, chart)?;
        }
    }
    stacks.write(book.add_worksheet().set_name(STACKS)?)?;
    gauges.write(book.add_worksheet().set_name(GAUGES)?)
}

/// Rows of names and numbers.
#[derive(Default)]
struct DataSheet {
    rows: Vec<(String, Vec<Cell>)>,
}

enum Cell {
    Text(String),
    Number(f64),
}

impl DataSheet {
    /// Adds a row; returns its number.
    fn add(&mut self, name: &str, cells: impl Iterator<Item = Cell>) -> u32 {
        self.rows.push((name.to_owned(), cells.collect()));
        self.rows.len() as u32 - 1
    }

    fn write(&self, sheet: &mut Worksheet) -> Result<(), XlsxError> {
        let plain = Format::new();
        for (row, (name, cells)) in (0..).zip(&self.rows) {
            sheet.write(row, 0, name)?;
            for (column, cell) in (1..).zip(cells) {
                match cell {
                    Cell::Text(text) => sheet.write(row, column, text)?,
                    Cell::Number(number) => sheet.write_with_format(row, column, *number, &plain)?,
                };
            }
        }
        Ok(())
    }
}

/// Stacked bars.
fn stack_chart(title: &str, stack: &Stack, data: &mut DataSheet) -> Chart {
    let scale = Scale::of(&stack.unit, stack.bars.iter().map(|bar| bar.values.iter().sum()));
    let heads = data
        .add(title, stack.parts.iter().map(|part| Cell::Text(format!("{} {}", part.id, part.label).trim().to_owned())));
    for bar in &stack.bars {
        data.add(&bar.label, bar.values.iter().map(|v| Cell::Number(*v * scale.factor)));
    }
    let (first, last) = (heads + 1, heads + stack.bars.len() as u32);
    let mut chart = Chart::new(ChartType::ColumnStacked);
    chart.title().set_name(&format!("{title}: where the time went"));
    chart.y_axis().set_name(scale.unit.as_str());
    chart.legend().set_position(ChartLegendPosition::Right);
    chart.set_width(940).set_height(520);
    // The first component in the list is on top.
    for part in (0..stack.parts.len()).rev().filter(|&p| stack.bars.iter().any(|bar| bar.values[p] > 0.0)) {
        let column = part as u16 + 1;
        let mut fill = ChartSolidFill::new();
        fill.set_color(Color::RGB(palette::colour(stack, part)));
        let series = chart.add_series().set_name((STACKS, heads, column)).set_categories((STACKS, first, 0, last, 0));
        series.set_values((STACKS, first, column, last, column)).set_gap(20);
        series.set_format(ChartFormat::new().set_solid_fill(&fill));
    }
    chart
}

/// One bar per unit; marked ones have another colour.
fn gauge_chart(title: &str, gauges: &[Gauge], data: &mut DataSheet) -> Chart {
    let heads = data.add(title, gauges.iter().map(|g| Cell::Text(g.label.clone())));
    let row = data.add("busy", gauges.iter().map(|g| Cell::Number(g.fraction)));
    let last = gauges.len() as u16;
    let mut chart = Chart::new(ChartType::Column);
    chart.title().set_name(&format!("{title}: busy"));
    chart.y_axis().set_min(0.0).set_max(1.0).set_num_format("0%");
    chart.legend().set_hidden();
    chart.set_width(520).set_height(520);
    let points = gauges.iter().map(|gauge| {
        let colour = if gauge.is_high() { palette::HIGH } else { palette::BUSY };
        let mut fill = ChartSolidFill::new();
        fill.set_color(Color::RGB(colour));
        ChartPoint::new().set_format(ChartFormat::new().set_solid_fill(&fill))
    });
    let series = chart.add_series().set_categories((GAUGES, heads, 1, heads, last));
    series.set_values((GAUGES, row, 1, row, last)).set_points(&points.collect::<Vec<_>>());
    chart
}
