//! Sets of objects for the tier: their predicted loss, and the best ones.

use fxscope_latency::methods::tier::{self, Interval, Tier, Traffic};
use fxscope_latency::{Counts, System};
use fxscope_session::DataSeries;

use super::objects::{TierObject, traffic};

/// Objects that move to the tier together.
#[derive(Clone, Debug, PartialEq)]
pub struct TierSet {
    /// The loss that is accepted, as a share of the time; `None`: any.
    pub limit: Option<f64>,
    /// Its objects, by index.
    pub members: Vec<usize>,
    /// Their bytes.
    pub bytes: u64,
    /// Share of the time that is lost, as predicted.
    pub loss: f64,
    /// The same as simulated.
    pub simulated: Option<f64>,
}

/// What the loss of a set follows from.
pub(super) struct Model {
    intervals: Vec<Interval>,
    tier: Tier,
    system: System,
}

impl Model {
    /// Returns the model of a run with these intervals, whose objects are in the order of `objects`.
    pub(super) fn new(
        counts: &[Counts],
        series: &DataSeries,
        objects: &[TierObject],
        tier: Tier,
        system: System,
    ) -> Model {
        let mut place = vec![objects.len(); objects.iter().map(|object| object.index + 1).max().unwrap_or(0)];
        objects.iter().enumerate().for_each(|(number, object)| place[object.index] = number);
        let mut slots = series.intervals.iter();
        let mut end = 0.0;
        let interval = |counts: &Counts| {
            let begin = end;
            end += counts.seconds;
            // Records leave out intervals in which nothing happened: the next one has their time.
            let slots = slots.by_ref().take(series.slots(begin, end));
            // The rest is an object that never moves.
            let mut all = vec![Traffic::default(); objects.len() + 1];
            for (&index, of) in slots.flatten() {
                let number = place.get(index).copied().unwrap_or(objects.len());
                all[number] = all[number].plus(traffic(of));
            }
            Interval { counts: counts.clone(), objects: all }
        };
        Model { intervals: counts.iter().map(interval).collect(), tier, system }
    }

    /// Returns the share of the time that is lost if these objects are in the tier.
    pub(super) fn loss(&self, members: &[usize]) -> f64 {
        let objects = self.intervals.first().map_or(0, |interval| interval.objects.len());
        let mut in_tier = vec![false; objects];
        members.iter().for_each(|&member| in_tier[member] = true);
        tier::slowdown(&self.intervals, &in_tier, &self.tier, &self.system) - 1.0
    }

    fn set(&self, limit: Option<f64>, members: Vec<usize>, objects: &[TierObject]) -> TierSet {
        let bytes = members.iter().map(|&member| objects[member].bytes).sum();
        TierSet { limit, bytes, loss: self.loss(&members), members, simulated: None }
    }
}

/// Returns the objects that can be placed, in their order: the largest first.
fn placeable(objects: &[TierObject]) -> Vec<usize> {
    (0..objects.len()).filter(|&place| objects[place].place.is_ok()).collect()
}

/// Returns a set for each accepted loss: objects are added, the largest first, as long as the loss of all together stays below. The
/// last set has all objects that can be placed.
pub(super) fn sets(model: &Model, objects: &[TierObject], losses: &[f64]) -> Vec<TierSet> {
    let all = placeable(objects);
    let within = |&limit: &f64| {
        let mut members: Vec<usize> = Vec::new();
        for &object in &all {
            members.push(object);
            if model.loss(&members) > limit {
                members.pop();
            }
        }
        model.set(Some(limit), members, objects)
    };
    let mut sets: Vec<TierSet> = losses.iter().map(within).collect();
    sets.push(model.set(None, all.clone(), objects));
    sets
}

/// Returns bytes and loss when objects move one after the other, those with the least loss per byte first.
pub(super) fn steps(model: &Model, objects: &[TierObject]) -> Vec<(u64, f64)> {
    let each_byte = |place: usize| objects[place].loss.unwrap_or(0.0) / objects[place].bytes.max(1) as f64;
    let mut order = placeable(objects);
    order.sort_by(|&a, &b| each_byte(a).total_cmp(&each_byte(b)));
    let mut members = Vec::new();
    let step = |place: usize| {
        members.push(place);
        (members.iter().map(|&member| objects[member].bytes).sum(), model.loss(&members))
    };
    order.into_iter().map(step).collect()
}
