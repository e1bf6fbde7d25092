//! Loops, calls and call stacks of any shape.

use fxscope_record::{
    Accesses, Arithmetic, CallContext, CallCount, Calls, Data, DataCounts, DataLine, DataObject, DataUser, HotSpot,
    Loop, ObjectKind, SourceLine, SourceLines, StackFrame, StackSample, Stacks,
};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use crate::file::count;

/// Stall causes, pipes, events, and hot spots with as many counts of each.
pub(crate) type HotSpots = (Vec<String>, Vec<String>, Vec<String>, Vec<HotSpot>);

/// See [`HotSpots`].
pub(crate) fn hot_spots() -> impl Strategy<Value = HotSpots> {
    let names = || vec(any::<String>(), 0..4);
    (names(), names(), names()).prop_flat_map(|(stalls, pipes, events)| {
        let counts = |n: usize| vec(prop_oneof![Just(0), count()], n);
        let key = (proptest::option::of(any::<u32>()), count());
        let times = (count(), count(), count());
        let amounts = (counts(stalls.len()), counts(pipes.len()), counts(events.len()));
        let spot = (any::<String>(), count(), count(), times, amounts);
        let spots = btree_map(key, spot, 0..40).prop_map(|spots| {
            let spot = |((file, place), (function, address, offset, times, (stalls, pipes, events)))| {
                let (executions, cycles, in_flight) = times;
                HotSpot { file, place, address, function, offset, executions, cycles, in_flight, stalls, pipes, events }
            };
            spots.into_iter().map(spot).collect()
        });
        (Just(stalls), Just(pipes), Just(events), spots)
    })
}

/// Loops with amounts of as many stall causes, pipes and events, in a run with some files.
pub(crate) fn loops(amounts: [usize; 3], files: usize) -> impl Strategy<Value = Vec<Loop>> {
    let counts = |n: usize| vec(prop_oneof![Just(0), count()], n);
    let key = (0..files.max(1) as u32, count());
    let parts = (counts(amounts[0]), counts(amounts[1]), counts(amounts[2]));
    let source = proptest::option::of((any::<String>(), any::<u32>(), any::<u32>()));
    let of = (any::<String>(), vec(count(), 14), proptest::option::of(count()), source, parts, any::<bool>());
    let most = if files == 0 { 0 } else { 6 };
    btree_map(key, of, 0..=most).prop_map(|loops| {
        let mut list = Vec::new();
        for (index, (key, of)) in (0u32..).zip(loops) {
            let (file, place) = key;
            let (function, n, entries, source, (stalls, pipes, events), nested) = of;
            list.push(Loop {
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
            });
        }
        list
    })
}

/// Data objects, and lines in them.
pub(crate) fn data() -> impl Strategy<Value = Data> {
    let counts = vec(count(), 11).prop_map(|n| DataCounts {
        l1_refills: n[0],
        l1_misses: n[1],
        l2_refills: n[2],
        l2_misses: n[3],
        walks: n[4],
        upgrades: n[5],
        shared_lines: n[6],
        lines_across_cmgs: n[7],
        transfers: n[8],
        falsely_shared_lines: n[9],
        false_transfers: n[10],
    });
    let source = proptest::option::of((any::<String>(), any::<u32>()));
    let object = (0..5usize, any::<String>(), source, count(), count(), counts);
    let objects = vec(object, 1..4).prop_map(|objects| {
        let object =
            |(kind, name, source, blocks, bytes, counts): (usize, _, Option<(String, u32)>, _, _, _)| DataObject {
                kind: ObjectKind::ALL[kind],
                name,
                source: source.map(|(file, line)| SourceLine { file, line }),
                blocks,
                bytes,
                counts,
            };
        objects.into_iter().map(object).collect::<Vec<_>>()
    });
    let range = || proptest::option::of((any::<u32>(), any::<u32>()));
    let user = (any::<u32>(), any::<u32>(), any::<u32>(), range(), range());
    let user =
        user.prop_map(|(process, thread, cmg, touched, written)| DataUser { process, thread, cmg, touched, written });
    let lines = move |objects: Vec<DataObject>| {
        let line = (0..objects.len() as u32, count(), count(), any::<bool>(), vec(user.clone(), 0..3));
        let line = line.prop_map(|(object, offset, transfers, is_falsely_shared, users)| DataLine {
            object,
            offset,
            transfers,
            is_falsely_shared,
            users,
        });
        (Just(objects), vec(line, 0..3))
    };
    prop_oneof![
        Just(Data::default()),
        objects.prop_flat_map(lines).prop_map(|(objects, lines)| Data { objects, lines }),
    ]
}

/// Call stacks: each frame was called by the one before, or by none.
pub(crate) fn stacks() -> impl Strategy<Value = Stacks> {
    let frames = vec((any::<bool>(), any::<String>(), proptest::option::of(any::<String>())), 1..5);
    let samples = |frames: usize| vec((any::<u32>(), any::<u32>(), count(), 0..frames as u32), 0..6);
    let stacks = frames.prop_flat_map(move |frames| (1..u32::MAX, samples(frames.len()), Just(frames)));
    let stacks = stacks.prop_map(|(interval_ns, samples, frames)| {
        let frame = |(index, (called, function, file)): (u32, (bool, String, Option<String>))| StackFrame {
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

/// Calls, in a run with some files and loops: each context was called by the one before, or by none.
pub(crate) fn calls(files: usize, loops: usize) -> impl Strategy<Value = Calls> {
    let site = proptest::option::of((any::<String>(), any::<u32>()));
    let context = (any::<bool>(), any::<String>(), any::<u32>(), any::<bool>(), site, any::<u32>());
    let counts = |contexts: usize| vec((0..contexts as u32, any::<u32>(), any::<u32>(), count(), count()), 0..6);
    let calls = vec(context, 1..5).prop_flat_map(move |contexts| (counts(contexts.len()), Just(contexts)));
    let calls = calls.prop_map(move |(counts, contexts)| {
        let one_of = |number: u32, all: usize| number.checked_rem(all as u32);
        let context = |(index, (called, function, file, is_inlined, site, in_loop)): (u32, (_, _, u32, _, _, u32))| {
            let site: Option<(String, u32)> = site;
            CallContext {
                caller: (called && index > 0).then(|| index - 1),
                function,
                file: one_of(file, files),
                is_inlined,
                site: site.map(|(file, line)| SourceLine { file, line }),
                in_loop: one_of(in_loop, loops),
            }
        };
        let count = |(context, process, thread, calls, cycles)| CallCount { context, process, thread, calls, cycles };
        Calls {
            contexts: (0u32..).zip(contexts).map(context).collect(),
            counts: counts.into_iter().map(count).collect(),
        }
    });
    prop_oneof![Just(Calls::default()), calls]
}
