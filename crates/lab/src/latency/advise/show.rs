//! The advice as a sheet.

use fxscope_machine::settings::size;
use fxscope_report::document::{Curve, Plot};
use fxscope_report::sheet::{Cell, Column, Sheet, Table};

use super::{TierAdvice, TierObject, TierSet};

const MIB: f64 = 1_048_576.0;
/// Most objects that the table lists.
const LISTED: usize = 20;
/// Share of the traffic from which an object is listed that cannot be placed.
const LEAST_TRAFFIC: f64 = 0.01;

impl TierAdvice {
    /// Returns the advice as tables, sentences and a plot.
    #[must_use]
    pub fn sheet(&self) -> Sheet {
        Sheet {
            title: format!("Data in memory tier {}: {} on {}", self.tier.name, self.command, self.machine),
            tables: vec![self.objects_table(), self.sets_table()],
            notes: vec![("Notes", self.notes()), ("Failed", self.failed.clone())],
            plots: vec![self.plot()],
            bars: Vec::new(),
        }
    }

    fn has_simulations(&self) -> bool {
        self.objects.iter().any(|of| of.simulated.is_some()) || self.sets.iter().any(|of| of.simulated.is_some())
    }

    /// The columns of losses; with a simulated one if there are simulations.
    fn losses(&self) -> Vec<Column> {
        let simulated = self.has_simulations().then(|| Column::new("simulated"));
        std::iter::once(Column::new("predicted loss")).chain(simulated).collect()
    }

    /// The cells of these columns.
    fn loss_cells(&self, predicted: Option<f64>, simulated: Option<f64>) -> Vec<Cell> {
        let cell = |loss: Option<f64>| loss.map_or_else(Cell::none, Cell::share);
        let simulated = self.has_simulations().then(|| cell(simulated));
        std::iter::once(cell(predicted)).chain(simulated).collect()
    }

    fn objects_table(&self) -> Table {
        let first = ["data", "size", "of traffic", "of misses"].map(Column::new);
        let mut table = Table::new("Each object alone in the tier", first.into_iter().chain(self.losses()));
        let misses: f64 = self.objects.iter().map(|object| object.traffic.demanded).sum();
        for object in self.listed() {
            table.push(object.title.clone(), self.object_row(object, self.lines(), misses));
        }
        table
    }

    /// Returns the lines of all objects.
    fn lines(&self) -> f64 {
        self.objects.iter().map(|object| object.traffic.lines()).sum()
    }

    /// Returns the objects of the table: those that can be placed, and others with much traffic.
    fn listed(&self) -> impl Iterator<Item = &TierObject> {
        let least = self.lines() * LEAST_TRAFFIC;
        let matters = move |object: &&TierObject| object.place.is_ok() || object.traffic.lines() > least;
        self.objects.iter().filter(matters).take(LISTED)
    }

    fn object_row(&self, object: &TierObject, lines: f64, misses: f64) -> Vec<Cell> {
        let share = |part: f64, whole: f64| Cell::share(if whole > 0.0 { part / whole } else { 0.0 });
        let first = [bytes(object.bytes), share(object.traffic.lines(), lines), share(object.traffic.demanded, misses)];
        first.into_iter().chain(self.loss_cells(object.loss, object.simulated)).collect()
    }

    fn sets_table(&self) -> Table {
        let first = ["accepted loss", "objects", "size", "of data"].map(Column::new);
        let mut table = Table::new("Sets of objects in the tier", first.into_iter().chain(self.losses()));
        let all: u64 = self.objects.iter().map(|object| object.bytes).sum();
        for set in &self.sets {
            let label = set.limit.map_or_else(|| "any".to_owned(), |limit| Cell::share(limit).text().to_owned());
            let of_all = set.bytes as f64 / all.max(1) as f64;
            let first =
                [Cell::new(set.members.len(), set.members.len().to_string()), bytes(set.bytes), Cell::share(of_all)];
            table.push(label, first.into_iter().chain(self.loss_cells(Some(set.loss), set.simulated)).collect());
        }
        table
    }

    fn notes(&self) -> Vec<String> {
        let tier = &self.tier;
        let limits = format!(
            "Tier {}: {} ns from load to use, {} GB/s read, {} GB/s written, {} GB/s together.",
            tier.name,
            tier.latency_ns,
            tier.read_bytes_per_second as f64 / 1e9,
            tier.write_bytes_per_second as f64 / 1e9,
            tier.total_bytes_per_second as f64 / 1e9
        );
        let mut notes = vec![limits, format!("Time with all data in fast memory: {:.3} ms.", self.seconds * 1e3)];
        notes.extend(self.sets.iter().filter(|set| set.limit.is_some()).map(|set| self.how(set)));
        let stays = |object: &TierObject| Some(format!("{} stays: {}.", object.title, object.place.as_ref().err()?));
        notes.extend(self.listed().filter_map(stays));
        notes
    }

    /// How to place a set.
    fn how(&self, set: &TierSet) -> String {
        let limit = set.limit.map_or_else(String::new, |limit| Cell::share(limit).text().to_owned());
        let names = set.members.iter().filter_map(|&member| self.objects[member].place.as_ref().ok());
        let options: Vec<_> = names.map(|name| format!("{name}={}", self.tier.name)).collect();
        if options.is_empty() {
            return format!("No object may live in the tier at a loss of at most {limit}.");
        }
        format!("At a loss of at most {limit}: --place '{}'", options.join(","))
    }

    /// The loss over the bytes in the tier.
    fn plot(&self) -> Plot {
        let percent = |loss: f64| loss * 100.0;
        let points = |list: Vec<(u64, f64)>| {
            list.into_iter().map(|(bytes, loss)| (bytes as f64 / MIB, percent(loss))).collect::<Vec<_>>()
        };
        let predicted: Vec<(u64, f64)> = std::iter::once((0, 0.0)).chain(self.steps.iter().copied()).collect();
        let mut simulated: Vec<(u64, f64)> =
            self.sets.iter().filter_map(|set| Some((set.bytes, set.simulated?))).collect();
        simulated.sort_by_key(|&(bytes, _)| bytes);
        let curves = [("predicted, least loss per byte first", predicted), ("simulated sets", simulated)];
        let curves = curves.into_iter().filter(|(_, list)| !list.is_empty());
        Plot {
            title: "Loss over data in the tier".to_owned(),
            across: "data in the tier, MiB".to_owned(),
            logarithmic: false,
            up: "loss, percent of the time".to_owned(),
            logarithmic_up: false,
            curves: curves.map(|(label, list)| Curve { label: label.to_owned(), points: points(list) }).collect(),
        }
    }
}

/// A number of bytes: exact for programs, in MiB for people.
fn bytes(bytes: u64) -> Cell {
    let text = if bytes < 1 << 20 { size(bytes) } else { format!("{:.1} MiB", bytes as f64 / MIB) };
    Cell::new(bytes, text)
}
