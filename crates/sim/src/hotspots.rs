//! Where the cycles went, by instruction.

use std::collections::BTreeMap;

use fxscope_pipeline::BoundBlock;
use fxscope_pipeline::bind::Profile;

use crate::code_map::CodeMap;
use crate::sampling::Sampling;

/// One instruction's share of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotSpot {
    /// The file that it is from, by its place in [`crate::Outcome::files`]; `None` for code that is from no file.
    pub file: Option<u32>,
    /// Its offset in that file, or its address.
    pub place: u64,
    /// Its address in a process that executed it.
    pub address: u64,
    /// Its function, and its offset in the function, bytes.
    pub function: Option<(String, u64)>,
    /// Times it was executed.
    pub executions: u64,
    /// The profile of its executions.
    pub profile: Profile,
}

/// The hot spots of all blocks, by file and place. Code that was decoded twice, or executed by several processes, is
/// one hot spot. The profile of executions in windows of a sampled run counts as often as the executions that they stand for.
pub(crate) fn hot_spots<'a>(
    blocks: impl Iterator<Item = &'a BoundBlock> + Clone,
    code_map: &CodeMap,
    sampling: Option<&Sampling>,
) -> Vec<HotSpot> {
    let mut by_place: BTreeMap<(Option<u32>, u64), HotSpot> = BTreeMap::new();
    let mut executions_of: BTreeMap<u32, u64> = BTreeMap::new();
    if sampling.is_some() {
        blocks.clone().for_each(|block| *executions_of.entry(block.origin).or_default() += block.sampled_executions());
    }
    for block in blocks {
        let in_windows = sampling.zip(block.in_windows.as_deref()).map(|(sampling, profile)| {
            (profile, executions_of[&block.origin], sampling.executions_in_windows(block.origin))
        });
        let origin = code_map.get(block.origin);
        for (i, profile) in block.profile.iter().enumerate() {
            let executions = block.executions_of(i);
            if executions == 0 {
                continue;
            }
            let distance = 4 * i as u64;
            let (file, place) = (origin.file, origin.place + distance);
            let spot = by_place.entry((file, place)).or_insert_with(|| HotSpot {
                file,
                place,
                address: block.start + distance,
                function: code_map.function(origin, i).map(|(name, offset)| (name.to_owned(), offset)),
                executions: 0,
                profile: Profile::default(),
            });
            spot.executions += executions;
            spot.profile.add(profile);
            if let Some((profile, executions, measured)) = in_windows {
                spot.profile.add(&profile[i].scaled(executions, measured));
            }
        }
    }
    by_place.into_values().collect()
}
