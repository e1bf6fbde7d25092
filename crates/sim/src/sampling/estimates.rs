//! The counts of a sampled run, estimated from its windows.

use fxscope_counts::Signals;
use fxscope_pipeline::Measures;
use fxscope_sampling::{Exposure, estimate};

use super::Sampling;
use crate::region::Region;

/// How a run was sampled.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleSummary {
    /// The plan, as [`fxscope_sampling::Plan`] is written.
    pub plan: String,
    /// Windows that were timed.
    pub windows: u64,
    /// Instructions that were timed and whose counts are known: those of the beginning, and of loops that may spin.
    pub exact: u64,
    /// Instructions that were timed in windows.
    pub timed: u64,
    /// Instructions that were only followed.
    pub followed: u64,
    /// The share of all instructions in blocks that no window has seen, 0 to 1: their costs are those of the others.
    pub unseen: f64,
    /// The regions, in the order of [`crate::Outcome::regions`].
    pub regions: Vec<SampledRegion>,
}

/// How well the counts of a region are known.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledRegion {
    /// The counts of all threads together, estimated as the replicates are. The sum over threads, each estimated by itself, differs a
    /// little from it.
    pub estimate: Signals,
    /// The counts of all threads together, each time without one group of windows (jackknife replicates).
    pub replicates: Vec<Signals>,
    /// As [`SampleSummary::unseen`], in this region.
    pub unseen: f64,
}

impl Sampling {
    /// Completes the counts of all regions with what the sample says. Returns how well they are known.
    pub(crate) fn complete(&self, regions: &mut [Region]) -> SampleSummary {
        let instructions = self.blocks.instructions();
        let regions: Vec<SampledRegion> =
            regions.iter_mut().map(|region| self.complete_region(region, &instructions)).collect();
        SampleSummary {
            plan: self.schedule.plan().to_string(),
            windows: self.sample.windows(),
            exact: self.apart,
            timed: self.timed,
            followed: self.blocks.exposure().instructions(&instructions).saturating_sub(self.timed),
            unseen: regions.first().map_or(0.0, |all| all.unseen),
            regions,
        }
    }

    fn complete_region(&self, region: &mut Region, instructions: &[u32]) -> SampledRegion {
        let (mut exposure, mut known) = (Exposure::new(), Signals::default());
        for counted in region.threads.values_mut() {
            exposure.merge(&counted.counts.exposure);
            known.merge(&counted.counts.signals);
            let own = estimate(&self.sample, instructions, &counted.counts.exposure);
            counted.counts.signals.merge(&Measures::rounded(own.totals()).signals());
        }
        let all = estimate(&self.sample, instructions, &exposure);
        let signals = |values: &[f64]| {
            let mut signals = Measures::rounded(values).signals();
            signals.merge(&known);
            signals
        };
        SampledRegion {
            estimate: signals(all.totals()),
            replicates: all.replicates().iter().map(|values| signals(values)).collect(),
            unseen: all.unseen_share(),
        }
    }

    /// Returns how many executions of a block windows have measured.
    pub(crate) fn executions_in_windows(&self, origin: u32) -> u64 {
        self.blocks.seen(origin)
    }
}
