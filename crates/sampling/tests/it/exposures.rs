//! Counts of executions.

use std::collections::BTreeMap;

use fxscope_sampling::Exposure;
use proptest::prelude::*;

fn counts() -> impl Strategy<Value = Vec<(u32, u64)>> {
    prop::collection::vec((0..2_000_u32, 0..1_000_u64), 0..40)
}

fn exposure(counts: &[(u32, u64)]) -> Exposure {
    counts.iter().copied().collect()
}

proptest! {
    #[test]
    fn counts_are_those_that_were_added(counts in counts()) {
        let exposure = exposure(&counts);
        let mut expected = BTreeMap::new();
        for (block, executions) in counts.iter().filter(|(_, n)| *n > 0) {
            *expected.entry(*block).or_insert(0) += executions;
        }
        prop_assert!(exposure.iter().eq(expected.iter().map(|(block, n)| (*block, *n))));
        let instructions: Vec<u32> = (0..2_000).collect();
        let sum: u64 = expected.iter().map(|(block, n)| u64::from(*block) * n).sum();
        prop_assert_eq!(exposure.instructions(&instructions), sum);
        let bytes = postcard::to_stdvec(&exposure).expect("writing to memory");
        prop_assert_eq!(postcard::from_bytes::<Exposure>(&bytes).expect("what was written"), exposure);
    }

    #[test]
    fn what_was_merged_is_what_was_added_since(first in counts(), second in counts()) {
        let (earlier, added) = (exposure(&first), exposure(&second));
        let mut later = earlier.clone();
        later.merge(&added);
        prop_assert_eq!(later.since(&earlier), added);
        prop_assert_eq!(later.since(&later), Exposure::new());
    }
}
