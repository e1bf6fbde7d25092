//! Names of functions as compilers make them.

/// What compilers put behind the name of a function for parts and copies of it, each followed by nothing, or by a dot and a number or
/// a word (GCC 14, LLVM 19).
const SUFFIXES: [&str; 8] = [".constprop", ".isra", ".part", ".cold", ".lto_priv", ".llvm", OMP_GCC, OMP_LLVM];
const OMP_GCC: &str = "._omp_fn";
const OMP_LLVM: &str = ".omp_outlined";

/// Returns the function of the source that a symbol is a part or a copy of: `solve` for `solve._omp_fn.0` and for `solve.isra.0.cold`.
#[must_use]
pub fn source_function(symbol: &str) -> &str {
    let ends = SUFFIXES.iter().filter_map(|suffix| {
        let at = symbol.find(suffix)?;
        let rest = &symbol[at + suffix.len()..];
        (at > 0 && (rest.is_empty() || rest.starts_with(['.', '_']))).then_some(at)
    });
    ends.min().map_or(symbol, |end| &symbol[..end])
}

/// Returns the function of the source whose OpenMP region the compiler has made a function of this name; `None` for other functions.
#[must_use]
pub fn omp_region_of(symbol: &str) -> Option<&str> {
    let is_region = [OMP_GCC, OMP_LLVM].iter().any(|suffix| symbol.contains(suffix));
    let function = source_function(symbol);
    (is_region && function != symbol).then_some(function)
}

/// Returns those of some symbols that a name stands for: the function of this name or, without one, its parts and copies.
pub fn meant<'a>(name: &str, symbols: impl Iterator<Item = &'a str> + Clone) -> Vec<&'a str> {
    let exact: Vec<&str> = symbols.clone().filter(|symbol| *symbol == name).take(1).collect();
    if !exact.is_empty() {
        return exact;
    }
    let mut parts: Vec<&str> = symbols.filter(|symbol| source_function(symbol) == name).collect();
    parts.sort_unstable();
    parts.dedup();
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_copies_belong_to_the_function_of_the_source() {
        for symbol in [
            "solve",
            "solve._omp_fn.0",
            "solve.constprop.0",
            "solve.isra.0.cold",
            "solve.part.3",
            "solve.omp_outlined",
            "solve.omp_outlined.1",
            "solve.omp_outlined_debug__",
            "solve._omp_fn.0.constprop.1",
        ] {
            assert_eq!(source_function(symbol), "solve", "{symbol}");
        }
        // Without a function's name, with other words, and of C++ and Rust.
        for symbol in ["", ".omp_outlined.", "solve.partial", "_ZN3foo3barEv", "core::fmt.parts"] {
            assert_eq!(source_function(symbol), symbol);
        }
    }

    #[test]
    fn openmp_regions_are_told_from_copies() {
        assert_eq!(omp_region_of("solve._omp_fn.0"), Some("solve"));
        assert_eq!(omp_region_of("solve.omp_outlined"), Some("solve"));
        assert_eq!(omp_region_of("solve.constprop.0"), None);
        assert_eq!(omp_region_of("solve"), None);
    }

    #[test]
    fn a_name_stands_for_the_function_and_without_one_for_its_parts() {
        let symbols = ["main", "solve._omp_fn.1", "solve._omp_fn.0", "other", "other._omp_fn.0", "solve._omp_fn.0"];
        assert_eq!(meant("solve", symbols.into_iter()), ["solve._omp_fn.0", "solve._omp_fn.1"]);
        assert_eq!(meant("other", symbols.into_iter()), ["other"]);
        assert!(meant("none", symbols.into_iter()).is_empty());
    }
}
