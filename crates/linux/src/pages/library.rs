//! The variables by which a program's environment steers the large-page library of the modelled system.

use fxscope_aarch64::Segment;

/// Which pages the library gives (`XOS_MMM_L_HPAGE_TYPE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageType {
    /// Large ones.
    Large,
    /// Normal ones: the library does nothing.
    Normal,
    /// Normal ones, and where a transparent huge page fits, that.
    Transparent,
}

/// What a program's environment says to the library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Library {
    /// The type of pages, when it is said.
    pub page_type: Option<PageType>,
    /// Whether stacks are to have large pages, when it is said (`XOS_MMM_L_LPG_MODE`).
    pub stack: Option<bool>,
    /// Whether pages of `.bss`, of stacks and of dynamic memory are taken at once (`XOS_MMM_L_PAGING_POLICY`).
    prepage: [bool; 3],
    /// Memory once taken is never given back (`XOS_MMM_L_ARENA_FREE=2`).
    pub keeps_memory: bool,
    /// What a reader of the run's results should know about the variables.
    pub notes: Vec<String>,
}

const PREFIX: &str = "XOS_MMM_L_";

/// `.bss` and dynamic memory at once, stacks when they are touched.
const PREPAGE: [bool; 3] = [true, false, true];

/// Variables about the library's own `malloc`, and the numbers they may have: the guest's is another one.
const OF_MALLOC: [(&str, u64, u64); 5] = [
    ("ARENA_LOCK_TYPE", 0, 1),
    ("MAX_ARENA_NUM", 1, i32::MAX as u64),
    ("HEAP_SIZE_MB", 1, u64::MAX),
    ("COLORING", 0, 1),
    ("FORCE_MMAP_THRESHOLD", 0, 1),
];

impl Library {
    /// What the environment says, of which each entry is `NAME=value`.
    pub(crate) fn of(environment: &[Vec<u8>]) -> Library {
        let mut notes = Vec::new();
        let variable = |name: &str| {
            let entry = format!("{PREFIX}{name}=").into_bytes();
            let value = environment.iter().find_map(|e| e.strip_prefix(&entry[..]))?;
            Some(String::from_utf8_lossy(value).into_owned())
        };
        let page_type = variable("HPAGE_TYPE").and_then(|value| {
            let words = [("hugetlbfs", PageType::Large), ("none", PageType::Normal), ("thp", PageType::Transparent)];
            word(&words, "HPAGE_TYPE", &value, "hugetlbfs", &mut notes)
        });
        let stack = variable("LPG_MODE").and_then(|value| {
            word(&[("base+stack", true), ("base", false)], "LPG_MODE", &value, "base+stack", &mut notes)
        });
        let prepage = variable("PAGING_POLICY").map_or(PREPAGE, |value| paging(&value, &mut notes));
        let keeps = variable("ARENA_FREE")
            .and_then(|value| word(&[("1", false), ("2", true)], "ARENA_FREE", &value, "1", &mut notes));
        for (name, least, most) in OF_MALLOC {
            notes.extend(variable(name).map(|value| of_malloc(name, &value, least..=most)));
        }
        let library = Library { page_type, stack, prepage, keeps_memory: keeps.unwrap_or(false), notes };
        if matches!(page_type, None | Some(PageType::Large)) { library } else { library.switched_off() }
    }

    /// Without large pages of its own the library does nothing of what the other variables ask for.
    fn switched_off(self) -> Library {
        Library { stack: None, prepage: [false; 3], keeps_memory: false, ..self }
    }

    /// Whether the pages of a segment are taken as soon as it is mapped.
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

/// The meaning of a variable's value; of another than the known words, a note, and that of the default, `fallback`.
fn word<T: Copy>(words: &[(&str, T)], name: &str, value: &str, fallback: &str, notes: &mut Vec<String>) -> Option<T> {
    let of = |text: &str| words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
    of(value).or_else(|| {
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let known = known.join(", ");
        notes.push(format!("{PREFIX}{name}={value} is not known ({known}); {fallback} holds."));
        of(fallback)
    })
}

/// `.bss:stack:dynamic`, each `demand` or `prepage`; anything else is the default.
fn paging(value: &str, notes: &mut Vec<String>) -> [bool; 3] {
    let field = |text: &str| match text {
        "prepage" => Some(true),
        "demand" => Some(false),
        _ => None,
    };
    let fields: Option<Vec<bool>> = value.split(':').map(field).collect();
    fields.and_then(|fields| fields.try_into().ok()).unwrap_or_else(|| {
        notes.push(format!(
            "{PREFIX}PAGING_POLICY={value} is not three times demand or prepage; prepage:demand:prepage holds."
        ));
        PREPAGE
    })
}

/// What to say of a variable of the library's `malloc`.
fn of_malloc(name: &str, value: &str, range: std::ops::RangeInclusive<u64>) -> String {
    if value.parse().is_ok_and(|number: u64| range.contains(&number)) {
        format!("{PREFIX}{name}={value} steers the library's own malloc; the program's malloc decides here (D100).")
    } else {
        let (least, most) = (range.start(), range.end());
        format!("{PREFIX}{name}={value} is no number from {least} to {most}; its default holds.")
    }
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
    fn without_variables_bss_and_dynamic_memory_are_taken_at_once_and_stacks_on_demand() {
        let library = library(&[]);
        assert_eq!(prepaged(&library), [true, true, false, true]);
        assert_eq!((library.page_type, library.stack, library.keeps_memory), (None, None, false));
        assert!(library.notes.is_empty());
    }

    #[test]
    fn each_field_of_the_paging_policy_counts_for_its_segment_and_data_are_always_taken_at_once() {
        assert_eq!(prepaged(&library(&["PAGING_POLICY=demand:demand:demand"])), [true, false, false, false]);
        assert_eq!(prepaged(&library(&["PAGING_POLICY=demand:prepage:demand"])), [true, false, true, false]);
        assert_eq!(prepaged(&library(&["PAGING_POLICY=prepage:demand:demand"])), [true, true, false, false]);
    }

    #[test]
    fn an_invalid_paging_policy_is_the_default_one_and_is_told() {
        for value in ["demand", "demand:demand", "demand:demand:demand:demand", "Demand:demand:demand", "::", ""] {
            let library = library(&[&format!("PAGING_POLICY={value}")]);
            assert_eq!(prepaged(&library), [true, true, false, true], "{value}");
            assert!(library.notes[0].contains("prepage:demand:prepage holds"), "{value}");
        }
    }

    #[test]
    fn without_large_pages_no_other_variable_counts() {
        let library = library(&["HPAGE_TYPE=none", "PAGING_POLICY=prepage:prepage:prepage", "ARENA_FREE=2"]);
        assert_eq!(prepaged(&library), [false; 4]);
        assert!(!library.keeps_memory);
    }

    #[test]
    fn unknown_words_are_told_with_the_known_ones() {
        let library = library(&["HPAGE_TYPE=huge", "LPG_MODE=all", "ARENA_FREE=3"]);
        assert_eq!((library.page_type, library.stack), (Some(PageType::Large), Some(true)));
        assert_eq!(library.notes[0], "XOS_MMM_L_HPAGE_TYPE=huge is not known (hugetlbfs, none, thp); hugetlbfs holds.");
        assert_eq!(library.notes.len(), 3);
    }

    #[test]
    fn variables_of_the_library_s_malloc_are_told_to_have_no_effect() {
        assert!(library(&["COLORING=1"]).notes[0].contains("the program's malloc decides"));
        assert!(library(&["MAX_ARENA_NUM=0"]).notes[0].contains("from 1 to 2147483647"));
    }
}
