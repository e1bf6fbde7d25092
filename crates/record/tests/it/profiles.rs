//! Loops and call stacks of any shape.

use fxscope_record::{Accesses, Arithmetic, Loop, SourceLines, StackFrame, StackSample, Stacks};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use crate::file::count;

/// Loops with amounts of as many stall causes, pipes and events, in a run with some files.
pub(crate) fn loops(amounts: [usize; 3], files: usize) -> impl Strategy<Value = Vec<Loop>> {
    let counts = |n: usize| vec(prop_oneof![Just(0), count()], n);
    let key = (0..files.max(1) as u32, count());
    let parts = (counts(amounts[0]), counts(amounts[1]), counts(amounts[2]));
    let source = proptest::option::of((any::<String>(), any::<u32>(), any::<u32>()));
    let of = (any::<String>(), vec(count(), 14), proptest::option::of(count()), source, parts, any::<bool>());
    let most = if files == 0 { 0 } else { 6 };
    btree_map(key, of, 0..=most).prop_map(|loops| {
        let of = |(index, ((file, place), (function, n, entries, source, (stalls, pipes, events), nested)))| Loop {
            parent: (nested && index > 0).then(|| index - 1),
            function,
            file,
            place,
            address: n[0],
            offset: n[1],
            size: n[2],
            source: source.map(|(file, first, last)| SourceLines { file, first, last }),
            iterations: n[3],
            entries,
            instructions: n[4],
            cycles: n[5],
            own_cycles: n[6],
            stalls,
            pipes,
            events,
            arithmetic: Arithmetic { operations: n[7], of_all_elements: n[8], instructions: n[9], bits: n[10] },
            accesses: Accesses { loaded: n[11], stored: n[12] },
        };
        (0u32..).zip(loops).map(of).collect()
    })
}

/// Call stacks: each frame was called by the one before, or by none.
pub(crate) fn stacks() -> impl Strategy<Value = Stacks> {
    let frames = vec((any::<bool>(), any::<String>(), proptest::option::of(any::<String>())), 1..5);
    let samples = |frames: usize| vec((any::<u32>(), any::<u32>(), count(), 0..frames as u32), 0..6);
    let stacks = frames.prop_flat_map(move |frames| (1..u32::MAX, samples(frames.len()), Just(frames)));
    let stacks = stacks.prop_map(|(interval_ns, samples, frames)| {
        let frame = |(index, (called, function, file))| StackFrame {
            caller: (called && index > 0).then(|| index - 1),
            function,
            file,
        };
        let sample = |(process, thread, at_ns, frame)| StackSample { process, thread, at_ns, frame };
        Stacks {
            interval_ns: interval_ns.into(),
            frames: (0u32..).zip(frames).map(frame).collect(),
            samples: samples.into_iter().map(sample).collect(),
        }
    });
    prop_oneof![Just(Stacks::default()), stacks]
}
