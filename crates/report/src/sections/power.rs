//! Power by CMG, and power over time.

use fxscope_pmu::energy::chip_watts;
use fxscope_pmu::{Evaluation, Team, Values};
use fxscope_record::{ALL, Intervals, Region, Run};

use super::plain;
use crate::document::{Body, Curve, Place, Plot, ProcessName, Row, Section, Value};

/// Most rows of a table, and most steps of a plot.
const ROWS: usize = 50;
const STEPS: usize = 500;
const NS_PER_S: f64 = 1e9;
const US_PER_S: f64 = 1e6;

/// The parts of a CMG's power, with what they are together and their energy; the last two of a chip contain its base.
const OF_CMG: [(&str, &str, &str); 5] = [
    ("cores", "chip_core_power", "W"),
    ("L2", "chip_l2_power", "W"),
    ("memory", "chip_memory_power", "W"),
    ("power", "cmg_power", "W"),
    ("energy", "cmg_energy", "J"),
];
const OF_CHIP: [(&str, &str, &str); 5] =
    [OF_CMG[0], OF_CMG[1], OF_CMG[2], ("power", "chip_power", "W"), ("energy", "energy", "J")];

/// Returns the power of each CMG and of the chip, for the run and each region; `None` if it is not known.
pub(crate) fn by_cmg(run: &Run) -> Option<Section> {
    let rows: Vec<Row> = run.regions.iter().flat_map(|region| of_region(run, region)).collect();
    let headings = std::iter::once("CMG").chain(OF_CMG.map(|(heading, ..)| heading));
    (!rows.is_empty()).then(|| Section::table("Power by CMG", headings, rows))
}

fn of_region(run: &Run, region: &Region) -> Vec<Row> {
    let evaluation = Evaluation::new(run, region);
    let name = |part: String| if region.name == ALL { part } else { format!("{}: {part}", plain(&region.name)) };
    let row = |part: String, values: &Values, metrics: [(&str, &str, &str); 5]| {
        let value = |(_, metric, unit): (&str, &str, &str)| Some(Value::number(values.get(metric)?, unit));
        Row { label: name(part), values: metrics.map(value).to_vec() }
    };
    let place = |team: &Team| Place::Cmg { process: ProcessName::of(run, team.process), cmg: team.cmg }.label();
    let cmgs = evaluation.cmgs();
    let parts = cmgs.iter().map(|(team, values)| row(place(team), values, OF_CMG));
    let chip = row("chip".to_owned(), &evaluation.total(), OF_CHIP);
    parts.chain([chip]).filter(|row| row.values.iter().any(Option::is_some)).collect()
}

/// Power of the chip in some time, seconds since the beginning of the run.
#[derive(Clone, Copy)]
struct Step {
    begin: f64,
    end: f64,
    watts: f64,
}

impl Step {
    fn joules(&self) -> f64 {
        self.watts * (self.end - self.begin)
    }
}

/// Returns a table for each series of intervals: the power of the chip and its energy, by intervals or, if there are many, by groups of them.
pub(crate) fn tables(run: &Run) -> Vec<Section> {
    let table = |series: &Intervals| {
        let steps = steps(run, series)?;
        let grouped = grouped(&steps, ROWS);
        let highest = grouped.iter().map(|step| step.watts).fold(0.0, f64::max);
        let headings = ["intervals", "until", "chip", "energy", "of the highest power"];
        let together = steps.len().div_ceil(ROWS);
        let label = |first: usize| match (first + together - 1).min(steps.len()) {
            last if last == first => first.to_string(),
            last => format!("{first}-{last}"),
        };
        let row = |(first, step): (usize, &Step)| {
            let share = Value::Share(step.watts / highest);
            let values = [
                Value::number(step.end, "s"),
                Value::number(step.watts, "W"),
                Value::number(step.joules(), "J"),
                share,
            ];
            Row { label: label(first), values: values.into_iter().map(Some).collect() }
        };
        let rows = (1..).step_by(together).zip(&grouped).map(row).collect();
        let title = title(series, together);
        Some(Section { title, body: Body::Table { headings: headings.map(str::to_owned).to_vec(), rows } })
    };
    run.intervals.iter().filter_map(table).collect()
}

/// Returns a plot for each series of intervals.
pub(crate) fn plots(run: &Run) -> Vec<Section> {
    let plot = |series: &Intervals| {
        let steps = steps(run, series)?;
        let title = title(series, steps.len().div_ceil(STEPS));
        let points = grouped(&steps, STEPS)
            .iter()
            .flat_map(|step| [(step.begin * US_PER_S, step.watts), (step.end * US_PER_S, step.watts)])
            .collect();
        let plot = Plot {
            title: title.clone(),
            across: "time, µs".to_owned(),
            logarithmic: false,
            up: "power of the chip, W".to_owned(),
            logarithmic_up: false,
            curves: vec![Curve { label: "chip".to_owned(), points }],
        };
        Some(Section { title, body: Body::Curves(plot) })
    };
    run.intervals.iter().filter_map(plot).collect()
}

fn title(series: &Intervals, together: usize) -> String {
    let region = if series.region == ALL { String::new() } else { format!(" in region {}", plain(&series.region)) };
    let mean = if together > 1 { format!(", means of {together} intervals") } else { String::new() };
    format!("Power over time{region}{mean}")
}

/// Returns a step for each interval; `None` if power is not known or there is no interval.
fn steps(run: &Run, series: &Intervals) -> Option<Vec<Step>> {
    let watts = chip_watts(run, series).filter(|watts| !watts.is_empty())?;
    let ends = series.rows.iter().map(|row| row.end_ns as f64 / NS_PER_S);
    let begins = std::iter::once(0.0).chain(ends.clone());
    Some(begins.zip(ends).zip(watts).map(|((begin, end), watts)| Step { begin, end, watts }).collect())
}

/// Returns at most `most` steps: neighbours together, with their mean power.
fn grouped(steps: &[Step], most: usize) -> Vec<Step> {
    let group = |group: &[Step]| {
        let (begin, end) = (group[0].begin, group[group.len() - 1].end);
        Step { begin, end, watts: group.iter().map(Step::joules).sum::<f64>() / (end - begin) }
    };
    steps.chunks(steps.len().div_ceil(most).max(1)).map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_keep_the_energy_and_the_time() {
        let step = |n: u32| Step { begin: f64::from(n), end: f64::from(n + 1), watts: 100.0 + f64::from(n) };
        let steps: Vec<_> = (0..7).map(step).collect();
        let grouped = grouped(&steps, 3);
        assert_eq!(
            grouped.iter().map(|step| (step.begin, step.end)).collect::<Vec<_>>(),
            [(0.0, 3.0), (3.0, 6.0), (6.0, 7.0)]
        );
        assert_eq!(grouped.iter().map(|step| step.watts).collect::<Vec<_>>(), [101.0, 104.0, 106.0]);
    }
}
