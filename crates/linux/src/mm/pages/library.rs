//! The environment variables that control the large-page library of the modelled system.

use std::ops::RangeInclusive;

use fxscope_guestmem::Segment;
use serde::{Deserialize, Serialize};

use super::Pages;
use super::malloc::{Malloc, entry};

/// Which pages the library allocates (`XOS_MMM_L_HPAGE_TYPE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum PageType {
    /// Large pages.
    Large,
    /// Normal pages: the library does nothing.
    Normal,
    /// Normal pages, and transparent huge pages where they fit.
    Transparent,
}

/// The library's settings in a program's environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Library {
    /// The type of pages, if set.
    pub page_type: Option<PageType>,
    /// Whether stacks have large pages, if set (`XOS_MMM_L_LPG_MODE`).
    pub stack: Option<bool>,
    /// Whether pages of `.bss`, of stacks and of dynamic memory are allocated at once (`XOS_MMM_L_PAGING_POLICY`).
    prepage: [bool; 3],
    /// Whether memory is never released once allocated (`XOS_MMM_L_ARENA_FREE=2`).
    pub keeps_memory: bool,
    /// What a reader of the run's results should know about the variables.
    pub notes: Vec<String>,
}

/// Prefix of the library's variables.
pub(super) const PREFIX: &str = "XOS_MMM_L_";

/// `.bss` and dynamic memory at once, stacks when touched.
const PREPAGE: [bool; 3] = [true, false, true];

impl PageType {
    /// Returns the page type that the environment sets, if any.
    pub(super) fn of(environment: &[Vec<u8>], notes: &mut Vec<String>) -> Option<PageType> {
        let words = [("hugetlbfs", PageType::Large), ("none", PageType::Normal), ("thp", PageType::Transparent)];
        word(&words, "HPAGE_TYPE", &variable(environment, "HPAGE_TYPE")?, "hugetlbfs", notes)
    }
}

impl Library {
    /// Reads the settings from the environment, whose entries are `NAME=value`.
    pub(crate) fn of(environment: &[Vec<u8>]) -> Library {
        let mut notes = Vec::new();
        let page_type = PageType::of(environment, &mut notes);
        let stack = variable(environment, "LPG_MODE").and_then(|value| {
            word(&[("base+stack", true), ("base", false)], "LPG_MODE", &value, "base+stack", &mut notes)
        });
        let policy = variable(environment, "PAGING_POLICY");
        let prepage = policy.map_or(PREPAGE, |value| paging(&value, &mut notes));
        if let Some(value) = variable(environment, "COLORING")
            && number("COLORING", &value, 0..=1, &mut notes).is_some()
        {
            notes.push(format!(
                "{PREFIX}COLORING={value} has no effect: blocks start where the program's malloc places them, \
                 at the same place of their first page."
            ));
        }
        let malloc = Malloc::of(environment, &mut notes);
        let library = Library { page_type, stack, prepage, keeps_memory: malloc.keeps_memory, notes };
        if matches!(page_type, None | Some(PageType::Large)) {
            library.noting(malloc.notes(environment))
        } else {
            library.switched_off()
        }
    }

    /// The same for a program that shows data objects in its `.bss` to libraries: the library allocates `.bss` at once, whatever the policy
    /// says.
    fn with_exported_bss(mut self) -> Library {
        let is_on = matches!(self.page_type, None | Some(PageType::Large));
        if is_on && !self.prepage[0] {
            self.prepage[0] = true;
            self.notes.push(format!(
                "{PREFIX}PAGING_POLICY: demand has no effect on .bss, because data objects in .bss are in the program's dynamic symbol \
                 table; the library then allocates .bss at once. On the machine .data and .bss also take two to three times the memory."
            ));
        }
        self
    }

    fn noting(mut self, notes: Vec<String>) -> Library {
        self.notes.extend(notes);
        self
    }

    /// Without large pages, the library ignores the other variables.
    fn switched_off(self) -> Library {
        Library { stack: None, prepage: [false; 3], keeps_memory: false, ..self }
    }

    /// Returns whether the pages of a segment are allocated as soon as it is mapped.
    pub(crate) fn prepages(&self, segment: Segment) -> bool {
        let [bss, stack, dynamic] = self.prepage;
        match segment {
            Segment::Data => matches!(self.page_type, None | Some(PageType::Large)),
            Segment::Bss => bss,
            Segment::Stack | Segment::ThreadStack => stack,
            Segment::Heap | Segment::Mmap => dynamic,
            Segment::Text | Segment::File | Segment::Shared => false,
        }
    }
}

impl Pages {
    /// The program that is about to start shows data objects in its `.bss` to libraries, or not.
    pub(crate) fn set_exported_bss(&mut self, exports: bool) {
        if exports {
            self.plan.library = self.plan.library.clone().with_exported_bss();
        }
    }
}

/// Returns the value of a variable of the library, named without the prefix.
pub(super) fn variable(environment: &[Vec<u8>], name: &str) -> Option<String> {
    entry(environment, &format!("{PREFIX}{name}"))
}

/// Returns the meaning of a variable's value; for an unknown value, adds a note and returns the default, `fallback`.
pub(super) fn word<T: Copy>(
    words: &[(&str, T)],
    name: &str,
    value: &str,
    fallback: &str,
    notes: &mut Vec<String>,
) -> Option<T> {
    let of = |text: &str| words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
    of(value).or_else(|| {
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let known = known.join(", ");
        notes.push(format!("{PREFIX}{name}={value} is not known ({known}); {fallback} is used."));
        of(fallback)
    })
}

/// Parses `.bss:stack:dynamic`, each `demand` or `prepage`; anything else is the default.
fn paging(value: &str, notes: &mut Vec<String>) -> [bool; 3] {
    let field = |text: &str| match text {
        "prepage" => Some(true),
        "demand" => Some(false),
        _ => None,
    };
    let fields: Option<Vec<bool>> = value.split(':').map(field).collect();
    fields.and_then(|fields| fields.try_into().ok()).unwrap_or_else(|| {
        notes.push(format!(
            "{PREFIX}PAGING_POLICY={value} is not three of demand or prepage; prepage:demand:prepage is used."
        ));
        PREPAGE
    })
}

/// Returns the number that a variable sets; for anything else, adds a note.
pub(super) fn number(name: &str, value: &str, range: RangeInclusive<u64>, notes: &mut Vec<String>) -> Option<u64> {
    let number = value.parse().ok().filter(|number| range.contains(number));
    if number.is_none() {
        let (least, most) = (range.start(), range.end());
        notes.push(format!("{PREFIX}{name}={value} is not a number from {least} to {most}; its default is used."));
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(variables: &[&str]) -> Library {
        Library::of(&variables.iter().map(|v| format!("XOS_MMM_L_{v}").into_bytes()).collect::<Vec<_>>())
    }

    fn prepaged(library: &Library) -> [bool; 4] {
        [Segment::Data, Segment::Bss, Segment::Stack, Segment::Mmap].map(|segment| library.prepages(segment))
    }

    #[test]
    fn by_default_bss_and_dynamic_memory_are_allocated_at_once_and_stacks_on_demand() {
        let library = library(&[]);
        assert_eq!(prepaged(&library), [true, true, false, true]);
        assert_eq!((library.page_type, library.stack, library.keeps_memory), (None, None, false));
        assert!(library.notes.is_empty());
    }

    #[test]
    fn each_field_of_the_paging_policy_applies_to_its_segment_and_data_are_always_allocated_at_once() {
        assert_eq!(prepaged(&library(&["PAGING_POLICY=demand:demand:demand"])), [true, false, false, false]);
        assert_eq!(prepaged(&library(&["PAGING_POLICY=demand:prepage:demand"])), [true, false, true, false]);
        assert_eq!(prepaged(&library(&["PAGING_POLICY=prepage:demand:demand"])), [true, true, false, false]);
    }

    #[test]
    fn a_bss_that_libraries_see_is_allocated_at_once_whatever_the_policy() {
        let demand = library(&["PAGING_POLICY=demand:demand:demand"]).with_exported_bss();
        assert_eq!(prepaged(&demand), [true, true, false, false]);
        assert!(demand.notes[0].contains("demand has no effect on .bss"));
        assert!(library(&[]).with_exported_bss().notes.is_empty());
        let none = library(&["HPAGE_TYPE=none", "PAGING_POLICY=demand:demand:demand"]).with_exported_bss();
        assert_eq!((prepaged(&none), none.notes.len()), ([false; 4], 0));
    }

    #[test]
    fn an_invalid_paging_policy_is_reported_and_the_default_used() {
        for value in ["demand", "demand:demand", "demand:demand:demand:demand", "Demand:demand:demand", "::", ""] {
            let library = library(&[&format!("PAGING_POLICY={value}")]);
            assert_eq!(prepaged(&library), [true, true, false, true], "{value}");
            assert!(library.notes[0].contains("prepage:demand:prepage is used"), "{value}");
        }
    }

    #[test]
    fn without_large_pages_no_other_variable_has_an_effect() {
        let library = library(&["HPAGE_TYPE=none", "PAGING_POLICY=prepage:prepage:prepage", "ARENA_FREE=2"]);
        assert_eq!(prepaged(&library), [false; 4]);
        assert!(!library.keeps_memory);
    }

    #[test]
    fn unknown_values_are_reported_with_the_known_ones() {
        let library = library(&["HPAGE_TYPE=huge", "LPG_MODE=all", "ARENA_FREE=3"]);
        assert_eq!((library.page_type, library.stack), (Some(PageType::Large), Some(true)));
        assert_eq!(
            library.notes[0],
            "XOS_MMM_L_HPAGE_TYPE=huge is not known (hugetlbfs, none, thp); hugetlbfs is used."
        );
        assert_eq!(library.notes.iter().filter(|note| note.contains("is not known")).count(), 3);
    }

    #[test]
    fn colouring_is_reported_to_have_no_effect() {
        assert!(library(&["COLORING=1"]).notes[0].contains("has no effect"));
        assert!(library(&["COLORING=2"]).notes[0].contains("from 0 to 1"));
    }

    #[test]
    fn the_variables_set_for_the_c_library_are_in_the_notes() {
        let notes = library(&["ARENA_FREE=1"]).notes;
        let told = "MALLOC_MMAP_THRESHOLD_=134217728, MALLOC_ARENA_MAX=1 in the environment";
        assert!(notes.len() == 1 && notes[0].contains(told), "{notes:?}");
        assert!(library(&["HPAGE_TYPE=none", "ARENA_FREE=1"]).notes.is_empty());
    }
}
