//! Built-in models.

const PROFILES: &[(&str, &str)] = &[
    ("silent", include_str!("../../../../data/noise/silent.toml")),
    ("k-computer", include_str!("../../../../data/noise/k-computer.toml")),
    ("k-computer-unaligned", include_str!("../../../../data/noise/k-computer-unaligned.toml")),
    ("fx1", include_str!("../../../../data/noise/fx1.toml")),
    ("fx1-suppressed", include_str!("../../../../data/noise/fx1-suppressed.toml")),
    ("mckernel", include_str!("../../../../data/noise/mckernel.toml")),
    ("linux-250hz", include_str!("../../../../data/noise/linux-250hz.toml")),
    ("linux-1000hz", include_str!("../../../../data/noise/linux-1000hz.toml")),
];

/// Names of the built-in models.
pub fn names() -> impl Iterator<Item = &'static str> {
    PROFILES.iter().map(|profile| profile.0)
}

/// Returns the text of one.
pub(super) fn text(name: &str) -> Option<&'static str> {
    PROFILES.iter().find(|profile| profile.0 == name).map(|profile| profile.1)
}
