//! Simulates one assignment in the simplest way: lists of pages, searched from the front.

use std::collections::VecDeque;

use fxscope_tlbsweep::{Access, Arrangement, Counts, Replacement, TlbConfig};

/// A page: its segment, number and size.
type Page = (u8, u64, u64);

/// Counts of a simulation in which pages of segment `s` have `sizes[s]` bytes.
pub fn simulate(config: &TlbConfig, sizes: &[u64], stream: &[Access]) -> Counts {
    let mut first: VecDeque<Page> = VecDeque::new();
    let sets = config.set_entries / config.ways;
    let mut second: Vec<VecDeque<Page>> = vec![VecDeque::new(); sets];
    let mut counts = Counts { exact: true, ..Counts::default() };
    for access in stream {
        let segment = usize::from(access.segment);
        let size = sizes[segment];
        let page = (access.segment, access.addr / size, size);
        let set = &mut second[(access.addr / size) as usize % sets];
        match &config.arrangement {
            Arrangement::TwoLevel => {
                if missed(&mut first, page, config.entries, config.replacement) {
                    counts.first[segment] += 1;
                    if missed(set, page, config.ways, Replacement::Lru) {
                        counts.second[segment] += 1;
                        counts.walks[segment] += 1;
                    }
                }
            }
            Arrangement::SplitBySize(served) if served.contains(&size) => {
                let miss = u64::from(missed(set, page, config.ways, Replacement::Lru));
                counts.second[segment] += miss;
                counts.walks[segment] += miss;
            }
            Arrangement::SplitBySize(_) => {
                let miss = u64::from(missed(&mut first, page, config.entries, config.replacement));
                counts.first[segment] += miss;
                counts.walks[segment] += miss;
            }
        }
    }
    counts
}

/// Accesses a page in an associative memory; returns whether it missed.
fn missed(held: &mut VecDeque<Page>, page: Page, room: usize, replacement: Replacement) -> bool {
    let place = held.iter().position(|&other| other == page);
    match (place, replacement) {
        (Some(_), Replacement::Fifo) => {}
        (Some(place), Replacement::Lru) => {
            held.remove(place);
            held.push_front(page);
        }
        (None, _) => {
            held.push_front(page);
            held.truncate(room);
        }
    }
    place.is_none()
}
