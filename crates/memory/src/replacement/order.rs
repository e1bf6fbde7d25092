//! The ways of a set in an order, four bits each: the first one in the lowest bits.

use fxscope_machine::spec::MAX_WAYS;

/// The order of an empty set. Way 0 is the first.
pub const IN_ORDER: u64 = 0xfedc_ba98_7654_3210;
const _: () = assert!(MAX_WAYS <= 16, "ways have four bits");

/// `way` becomes the first.
#[inline(always)]
pub fn make_first(order: &mut u64, way: usize) {
    let way = way as u64;
    if *order & 15 != way {
        let at = 4 * place_of(*order, way);
        // That way and the ones before it.
        let changed = (16_u64 << at).wrapping_sub(1);
        let moved = *order << 4 | *order >> at & 15;
        *order ^= (*order ^ moved) & changed;
    }
}

/// `way` becomes the last of `ways`.
pub fn make_last(order: &mut u64, way: usize, ways: usize) {
    let at = 4 * place_of(*order, way as u64);
    let end = 4 * (ways as u32 - 1);
    let before = *order & ((1 << at) - 1);
    let after = *order >> 4 & ((1 << end) - 1) & !((1 << at) - 1);
    let unused = *order & (!0 << 4 << end);
    *order = unused | (way as u64) << end | after | before;
}

/// The number of ways before `way`.
#[inline(always)]
fn place_of(order: u64, way: u64) -> u32 {
    const EACH: u64 = 0x1111_1111_1111_1111;
    let differs = order ^ (way * EACH);
    // The lowest four bits that are zero; a borrow reaches only places above.
    (differs.wrapping_sub(EACH) & !differs & (EACH << 3)).trailing_zeros() / 4
}

/// The way at `place`.
#[inline(always)]
pub fn way_at(order: u64, place: usize) -> usize {
    (order >> (4 * place) & 15) as usize
}

/// The last way in the order that is a bit of `candidates`.
#[inline(always)]
pub fn last_of(order: u64, candidates: u32) -> usize {
    let mut places = (0..MAX_WAYS as usize).rev().map(|place| way_at(order, place));
    places.find(|way| candidates >> way & 1 == 1).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_a_list() {
        for ways in [1, 2, 4, 7, 14, 16] {
            let mut order = IN_ORDER;
            let mut list: Vec<usize> = (0..ways).collect();
            for step in 0..2_000_usize {
                let way = (step * step + step / 3) % ways;
                list.retain(|&w| w != way);
                if step % 5 == 0 {
                    make_last(&mut order, way, ways);
                    list.push(way);
                } else {
                    make_first(&mut order, way);
                    list.insert(0, way);
                }
                let found: Vec<usize> = (0..ways).map(|place| way_at(order, place)).collect();
                assert_eq!(found, list, "{ways} ways, step {step}");
                assert_eq!(last_of(order, (1 << ways) - 1), list[ways - 1]);
                assert_eq!(last_of(order, 1 << way), way);
            }
        }
    }
}
