//! Profiles of the Firefox Profiler.

use std::collections::BTreeMap;
use std::time::SystemTime;

use fxprof_processed_profile::{
    CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, ProcessHandle, Profile, SamplingInterval, StackHandle,
    ThreadHandle, Timestamp,
};
use fxscope_record::Run;

use super::stacks::{Series, Stacks, Unit};
use crate::sections::{program, title};

/// Shares of a run's cycles are shown as this many samples.
const SAMPLES: u64 = 100_000;

/// Returns a run as a processed profile.
///
/// # Errors
/// If it cannot be written as JSON.
pub(super) fn profile(run: &Run, stacks: &Stacks) -> Result<Vec<u8>, String> {
    let interval = SamplingInterval::from_nanos(match stacks.unit {
        Unit::Nanoseconds => run.profile.stacks.interval_ns.max(1),
        Unit::Cycles => 1_000,
    });
    // Simulated time begins at 0, whenever the simulation ran.
    let mut profile = Profile::new(&title(run), SystemTime::UNIX_EPOCH.into(), interval);
    let mut processes: BTreeMap<u32, ProcessHandle> = BTreeMap::new();
    for series in &stacks.series {
        let name = process_name(run, series.process);
        let number = series.process + 1;
        let process = *processes.entry(series.process).or_insert_with(|| profile.add_process(&name, number, time(0)));
        let is_main = series.thread == 0;
        let tid = number.wrapping_mul(100_000).wrapping_add(series.thread);
        let thread = profile.add_thread(process, tid, time(0), is_main);
        profile.set_thread_name(thread, &series.name);
        add(&mut profile, thread, stacks, series);
    }
    serde_json::to_vec(&profile).map_err(|e| e.to_string())
}

fn process_name(run: &Run, process: u32) -> String {
    let of = run.parallel.processes.iter().find(|p| p.number == process);
    of.map_or_else(|| program(run), |p| p.program.rsplit('/').next().unwrap_or_default().to_owned())
}

fn time(ns: u64) -> Timestamp {
    Timestamp::from_nanos_since_reference(ns)
}

/// Adds the samples of a thread.
fn add(profile: &mut Profile, thread: ThreadHandle, stacks: &Stacks, series: &Series) {
    let mut known: Vec<Option<StackHandle>> = vec![None; stacks.nodes.len()];
    let all: u64 = series.samples.iter().map(|sample| sample.weight).sum();
    let mut at = 0;
    for sample in &series.samples {
        let stack = sample.node.and_then(|node| stack(profile, thread, stacks, node, &mut known));
        let (begin, weight) = match stacks.unit {
            Unit::Nanoseconds => (sample.at, 1),
            Unit::Cycles => (at, share(sample.weight, all)),
        };
        let busy = if stack.is_some() { sample.weight } else { 0 };
        profile.add_sample(thread, time(begin), stack, CpuDelta::from_nanos(busy), weight as i32);
        at = begin + 1_000;
    }
}

/// Returns a stack of a thread.
fn stack(
    profile: &mut Profile,
    thread: ThreadHandle,
    stacks: &Stacks,
    node: usize,
    known: &mut [Option<StackHandle>],
) -> Option<StackHandle> {
    let frames: Vec<usize> = stacks.frames(node).collect();
    let mut outer = None;
    for &frame in frames.iter().rev() {
        let handle = match known[frame] {
            Some(handle) => handle,
            None => {
                let label = profile.intern_string(&stacks.nodes[frame].name);
                let info = FrameInfo {
                    frame: Frame::Label(label),
                    category_pair: CategoryHandle::OTHER.into(),
                    flags: FrameFlags::empty(),
                };
                let interned = profile.intern_frame(thread, info);
                profile.intern_stack(thread, outer, interned)
            }
        };
        known[frame] = Some(handle);
        outer = Some(handle);
    }
    outer
}

/// Returns the samples that stand for a share of all cycles.
fn share(cycles: u64, all: u64) -> u64 {
    (u128::from(cycles) * u128::from(SAMPLES) / u128::from(all.max(1))).max(1) as u64
}
