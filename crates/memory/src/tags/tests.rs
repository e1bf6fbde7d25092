//! States of lines, and what is replaced.

use super::*;

#[test]
fn the_times_the_sector_and_the_flags_of_a_line_do_not_touch_each_other() {
    let flags = [Line::DIRTY, Line::PREFETCHED, Line::SHARED, Line::OWNED];
    for (ready, missed) in [(0, 0), (9_000, 9_000), (9_000, 8_999), (9_000, 5_000), (Line::TIME, Line::TIME - 9)] {
        for sector in 0..SECTORS as Sector {
            let mut line = Line::arriving_from_memory(ready, missed).in_sector(3).in_sector(sector);
            for flag in flags {
                assert!(!line.has(flag) && !line.take(flag));
                line.set(flag, false);
                assert!(!line.has(flag));
                line.set(flag, true);
                assert!(line.has(flag) && line.with(flag, false).has(flag));
                assert_eq!((line.ready(), line.missed(), line.sector()), (ready, Some(missed), sector));
            }
            line.join(Joins { sector: sector ^ 1, moves: false });
            assert_eq!(line.sector(), sector);
            line.join(Joins { sector: sector ^ 1, moves: true });
            assert_eq!(line.sector(), sector ^ 1);
            line.set_ready(ready / 2);
            assert_eq!(line.ready(), ready / 2);
            assert!(flags.iter().all(|&flag| line.take(flag)) && line.take(Line::FROM_MEMORY));
            assert_eq!((line.missed(), line.sector()), (None, sector ^ 1));
        }
    }
    assert_eq!(Line::arriving(100).missed(), None);
}

#[test]
fn a_miss_too_long_ago_to_be_kept_is_taken_for_the_earliest_that_can_be() {
    assert_eq!(Line::arriving_from_memory(9_000, 1_000).missed(), Some(9_000 - 4_095));
    assert_eq!(Line::arriving_from_memory(1_000, 9_000).missed(), Some(1_000), "not after it has come");
}

#[test]
fn a_line_whose_write_permission_is_asked_for_can_be_read_before_it_can_be_written() {
    let mut line = Line::arriving_from_memory(1_000, 900).in_sector(2).with(Line::SHARED, true);
    assert_eq!(line.readable(), 1_000);
    line.ask(1_060);
    assert_eq!((line.readable(), line.ready(), line.missed(), line.sector()), (1_000, 1_060, None, 2));
    assert!(line.has(Line::SHARED) && line.take(Line::ASKED));
    assert_eq!(line.readable(), 1_060);
    line.ask(9_060);
    assert_eq!(line.readable(), 9_060 - 4_095, "no longer ago than can be kept");
}

#[test]
fn an_emptied_place_is_filled_before_anything_leaves() {
    let mut t = Tags::<16>::new(2, 14);
    (0..14).for_each(|line| assert_eq!(t.insert(1, line, Line::default(), 0).1, None));
    assert!(t.remove(1, 5).is_some() && t.remove(1, 5).is_none());
    assert_eq!(t.insert(1, 20, Line::arriving(9), 0).1, None);
    assert_eq!(t.insert(1, 21, Line::default(), 0).1.map(|v| v.line), Some(0));
    assert!((6..14).all(|line| t.find(1, line).is_some()) && t.find(0, 20).is_none());
}

#[test]
fn the_least_recently_used_line_leaves() {
    let mut t = Tags::<16>::new(1, 2);
    let (a, _) = t.insert(0, 10, Line::default(), 0);
    t.insert(0, 11, Line::default().with(Line::DIRTY, true), 0);
    t.touch(a);
    let (_, victim) = t.insert(0, 12, Line::default(), 0);
    assert!(victim.is_some_and(|v| v.line == 11 && v.dirty()));
    assert!(t.find(0, 10).is_some() && t.find(0, 11).is_none());
}

#[test]
fn lines_on_their_way_stay_while_others_can_leave() {
    let mut t = Tags::<16>::new(1, 2);
    t.insert(0, 10, Line::arriving(100), 0);
    t.insert(0, 11, Line::default(), 0);
    let (_, victim) = t.insert(0, 12, Line::default(), 50);
    assert_eq!(victim.map(|v| v.line), Some(11));
}
