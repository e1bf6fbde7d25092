//! Samples of performance events, as `perf record` takes them: while an event samples the thread of a core, what the thread has
//! counted is passed to the guest after each of its blocks. Without such events, none of this runs.

use fxscope_aarch64::{BlockId, Engine};
use fxscope_counts::Signals;
use fxscope_machine::events::Event;

use crate::accounts::{pmu_events, while_running};
use crate::timing::Driver;

/// What a sampled thread on a core has counted.
#[derive(Clone)]
pub(crate) struct EventSampler {
    thread: u32,
    /// The state of the events ([`fxscope_linux::Guest::sampling_version`]).
    version: u64,
    /// The events of the platform that are sampled, in the guest's order.
    events: Vec<Event>,
    /// The thread's counts when it was first looked at, and those of the pipeline at that time.
    before: Signals,
    pipeline: Signals,
    /// What has followed since from the executions of each block.
    mix: Signals,
}

impl<E: Engine> Driver<'_, E> {
    /// Returns whether an event samples the thread of the active core, whose blocks must then be passed to [`Driver::sample_events`].
    #[inline(always)]
    pub(crate) fn samples_events(&mut self) -> bool {
        self.guest.is_sampled() && self.begin_samples()
    }

    /// Prepares the active core. Processes that are not timed have no samples.
    #[cold]
    fn begin_samples(&mut self) -> bool {
        let version = self.guest.sampling_version();
        let core = self.timing.machine.core();
        let Some(thread) = core.thread else { return false };
        if core.event_sampler.as_ref().is_some_and(|sampler| sampler.thread == thread && sampler.version == version) {
            return true;
        }
        let mut before = core.counted_by(core.pipeline.now()).signals;
        if let Some(earlier) = self.timing.totals.get(&thread) {
            before.merge(earlier.signals());
        }
        let all: Vec<&Event> = pmu_events(&self.options.spec).map(|(_, event)| event).collect();
        let events = self.guest.sampled_events().iter().map(|&index| all[index].clone()).collect();
        let pipeline = core.pipeline.counters();
        let sampler = EventSampler { thread, version, events, before, pipeline, mix: Signals::default() };
        self.timing.machine.core_mut().event_sampler = Some(Box::new(sampler));
        true
    }

    /// Passes what the thread of the active core has counted after a block. Returns whether the quantum must end: the events have
    /// changed.
    #[cold]
    pub(crate) fn sample_events(&mut self, id: BlockId, executed: usize) -> bool {
        let core = self.timing.machine.core_mut();
        let (Some(sampler), Some(Some(block))) = (&mut core.event_sampler, core.blocks.get(id.0 as usize)) else {
            return true;
        };
        block.add_mix_once(executed, &mut sampler.mix);
        let mut counted = core.pipeline.counters().since(&sampler.pipeline);
        counted.merge(&sampler.before);
        counted.merge(&sampler.mix);
        let counted = while_running(counted);
        let counts: Vec<u64> = sampler.events.iter().map(|event| event.count(&counted)).collect();
        let (version, start) = (sampler.version, block.start);
        self.set_clock();
        self.guest.sample(&counts, start + 4 * (executed.max(1) as u64 - 1));
        self.guest.sampling_version() != version
    }
}
