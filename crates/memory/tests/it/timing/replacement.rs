//! Replacement policies: how often textbook sequences of accesses miss, and that sectors keep their limits.

use fxscope_machine::spec::Replacement;
use fxscope_memory::sectors::{Limits, SECTORS, Sector};
use fxscope_memory::tags::{Line, Tags};

/// A cache of one set.
fn set(ways: usize, replacement: Replacement) -> Tags {
    Tags::new(1, ways).replacing(replacement)
}

/// The misses of accesses to `lines`.
fn misses(tags: &mut Tags, lines: impl IntoIterator<Item = u64>) -> usize {
    let missed = lines.into_iter().filter(|&line| match tags.find(0, line) {
        Some(slot) => {
            tags.touch(slot);
            false
        }
        None => {
            tags.insert(0, line, Line::default(), 0);
            true
        }
    });
    missed.count()
}

#[test]
fn fifo_has_the_anomaly_of_belady_and_lru_does_not() {
    // L. A. Belady, R. A. Nelson, G. S. Shedler, "An anomaly in space-time characteristics of certain programs running in a
    // paging machine" (1969): with four places this sequence misses once more than with three.
    let sequence = [1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5];
    let of = |ways, replacement| misses(&mut set(ways, replacement), sequence);
    assert_eq!([3, 4].map(|ways| of(ways, Replacement::Fifo)), [9, 10]);
    assert_eq!([3, 4].map(|ways| of(ways, Replacement::Lru)), [10, 8]);
}

#[test]
fn a_chase_through_one_line_too_many_always_misses_with_lru_and_fifo() {
    for replacement in [Replacement::Lru, Replacement::Fifo] {
        for ways in [2, 4, 14, 16] {
            let chase = (0..1_000).map(|i| i % (ways as u64 + 1));
            assert_eq!(misses(&mut set(ways, replacement), chase), 1_000);
        }
    }
}

#[test]
fn a_chase_through_one_line_too_many_misses_with_random_replacement_as_often_as_chance_lets_it() {
    // The victim is any of the lines, all but the new one. The line that is n accesses away is missed n accesses later, with n
    // from 1 to the number of ways: (ways + 1) / 2 accesses from miss to miss.
    for ways in [2, 4, 14, 16] {
        let chase = (0..40_000).map(|i| i % (ways as u64 + 1));
        let found = misses(&mut set(ways, Replacement::Random), chase) as f64 / 40_000.0;
        let expected = 2.0 / (ways as f64 + 1.0);
        assert!((found / expected - 1.0).abs() < 0.03, "{ways} ways: {found} for {expected}");
    }
}

#[test]
fn random_replacement_is_the_same_in_every_run_and_another_one_in_each_set() {
    let victims = |set: usize| -> Vec<Option<u64>> {
        let mut tags: Tags = Tags::new(2, 4).replacing(Replacement::Random);
        (0..40).map(|line| tags.insert(set, line, Line::default(), 0).1.map(|victim| victim.line)).collect()
    };
    assert_eq!(victims(0), victims(0));
    assert_ne!(victims(0), victims(1));
}

#[test]
fn tree_plru_spares_the_lines_of_the_half_that_was_used_last() {
    // The tree fills its two pairs of ways in turn: lines 1 and 3 are a pair, and lines 2 and 4. Line 1 is the least recently
    // used one in the end, but line 3 beside it was used last. Of the other pair line 2 was used after line 4.
    let mut tags = set(4, Replacement::TreePlru);
    assert_eq!(misses(&mut tags, [1, 2, 3, 4, 2, 3]), 4);
    let victim = tags.insert(0, 5, Line::default(), 0).1.map(|victim| victim.line);
    assert_eq!(victim, Some(4));
}

#[test]
fn every_policy_fills_empty_ways_before_a_line_leaves() {
    for &replacement in Replacement::ALL {
        let mut tags = set(14, replacement);
        (0..14).for_each(|line| assert_eq!(tags.insert(0, line, Line::default(), 0).1, None));
        assert!(tags.remove(0, 5).is_some() && tags.remove(0, 9).is_some());
        assert_eq!(misses(&mut tags, [0, 1, 2]), 0);
        (20..22).for_each(|line| assert_eq!(tags.insert(0, line, Line::default(), 0).1, None, "{replacement:?}"));
        assert!(tags.insert(0, 22, Line::default(), 0).1.is_some());
    }
}

#[test]
fn no_policy_replaces_a_line_on_its_way_while_others_can_leave() {
    for &replacement in Replacement::ALL {
        let mut tags = set(4, replacement);
        for (line, ready) in [(0, 1_000), (1, 1_000), (2, 1_000), (3, 5)] {
            tags.insert(0, line, Line::arriving(ready), 0);
        }
        let mut leaves = |line| tags.insert(0, line, Line::arriving(10), 10).1.map(|victim| victim.line);
        assert_eq!((leaves(4), leaves(5)), (Some(3), Some(4)), "{replacement:?}");
    }
}

#[test]
fn under_every_policy_a_sector_at_its_limit_replaces_its_own_lines() {
    const LIMITS: [u8; SECTORS] = [3, 9, 2, 2];
    for &replacement in Replacement::ALL {
        let mut tags = set(16, replacement);
        tags.limit(Limits::new(LIMITS));
        let mut held = [0; SECTORS];
        // Sectors in an order without a period, and sometimes a use of an earlier line.
        let mut state = 1_u64;
        for line in 0..4_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let sector = (state >> 60) as Sector % SECTORS as Sector;
            let victim = tags.insert(0, line, Line::default().in_sector(sector), 0).1;
            held[usize::from(sector)] += 1;
            if let Some(victim) = victim {
                held[usize::from(victim.state.sector())] -= 1;
            }
            if let Some(slot) = tags.find(0, line.saturating_sub(state >> 61)) {
                tags.touch(slot);
            }
            let full = held.iter().sum::<u8>() == 16;
            assert!(!full || held == LIMITS || line < 100, "{replacement:?}: {held:?} at {line}");
        }
    }
}
