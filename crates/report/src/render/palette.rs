//! Colours of the components of cycle accounting: shades of Okabe and Ito's colours, which colour-blind readers can
//! distinguish. Waiting for memory is vermilion, for L2 orange, for L1 yellow, for operations blue; commits are bluish
//! green.

use std::fmt::Write as _;

use crate::document::{Family, Stack};

/// Colour of a busy unit.
pub const BUSY: u32 = 0x42_92c6;
/// Colour of a unit that is busy above its limit.
pub const HIGH: u32 = 0xd9_4801;

/// The name of each family in style sheets, and the colours of its components, topmost first.
const COLOURS: &[(Family, &str, &[u32])] = &[
    (Family::Prefetch, "prefetch", &[0x7a_3e8f, 0xb8_89cc]),
    (Family::Memory, "memory", &[0x8c_2d04, 0xd9_4801]),
    (Family::L2, "l2", &[0xe6_7e1a, 0xfd_b863]),
    (Family::L1, "l1", &[0xb3_9b00, 0xf2_dc4c]),
    (Family::Operation, "operation", &[0x08_519c, 0x42_92c6]),
    (Family::Other, "other", &[0x6b_7280, 0x9c_a3af, 0xcc_79a7, 0xe3_b3cf]),
    (Family::Barrier, "barrier", &[0xcf_d4da]),
    (Family::Kernel, "kernel", &[0x3c_4048]),
    (Family::Commit, "commit", &[0xbf_e5da, 0x7f_ccb5, 0x36_a98b, 0x00_735c, 0x00_483a]),
];

/// The index of a component's family in [`COLOURS`], and of the component in its family.
fn place(stack: &Stack, part: usize) -> (usize, usize) {
    let family = stack.parts[part].family;
    let index = stack.parts[..part].iter().filter(|p| p.family == family).count();
    let row = COLOURS.iter().position(|c| c.0 == family).unwrap_or(0);
    (row, index % COLOURS[row].2.len())
}

/// Returns the colour of a component as RGB, one byte each.
#[must_use]
pub fn colour(stack: &Stack, part: usize) -> u32 {
    let (row, index) = place(stack, part);
    COLOURS[row].2[index]
}

/// Returns the CSS class of a component.
#[must_use]
pub fn class(stack: &Stack, part: usize) -> String {
    let (row, index) = place(stack, part);
    format!("f-{}-{index}", COLOURS[row].1)
}

/// Returns the CSS class of a family.
#[must_use]
pub fn class_of(family: Family) -> String {
    let name = COLOURS.iter().find(|row| row.0 == family).map_or("other", |row| row.1);
    format!("b-{name}")
}

/// Returns the style rules for all classes.
#[must_use]
pub fn rules() -> String {
    let mut css = format!(".busy{{background:#{BUSY:06x}}}.busy.high{{background:#{HIGH:06x}}}");
    for (_, name, colours) in COLOURS {
        // A family has the strongest of its colours.
        let strongest = colours[colours.len() / 2];
        let _ = write!(css, ".b-{name}{{background:#{strongest:06x}}}");
        for (i, colour) in colours.iter().enumerate() {
            let _ = write!(css, ".f-{name}-{i}{{fill:#{colour:06x}}}");
        }
    }
    css
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::StackPart;

    #[test]
    fn components_of_a_family_have_different_colours_in_the_style_sheet() {
        let families = [Family::Memory, Family::Commit, Family::Memory, Family::Commit];
        let part = |family| StackPart { id: String::new(), label: String::new(), family };
        let stack = Stack { unit: "s".to_owned(), parts: families.map(part).to_vec(), bars: Vec::new() };
        let mut colours: Vec<_> = (0..4).map(|i| colour(&stack, i)).collect();
        for (i, colour) in colours.iter().enumerate() {
            assert!(rules().contains(&format!(".{}{{fill:#{colour:06x}}}", class(&stack, i))));
        }
        colours.sort_unstable();
        colours.dedup();
        assert_eq!(colours.len(), 4);
    }
}
