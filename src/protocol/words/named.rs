//! Enums whose variants have names: on the wire, in the database, in the log.

/// Writes the enum, the list of its variants without and with their names, the name of each, and
/// the way back from a name.
#[macro_export]
macro_rules! named {
    (
        $(#[$attribute:meta])*
        pub enum $enum:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)* }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $enum { $($(#[$doc])* $variant,)* }

        impl $crate::words::named::Named for $enum {
            const CHOICES: &'static [(&'static str, $enum)] = &[$(($name, $enum::$variant),)*];
        }

        impl $enum {
            pub const ALL: [$enum; [$($name,)*].len()] = [$($enum::$variant,)*];

            pub const fn as_str(self) -> &'static str {
                match self { $($enum::$variant => $name,)* }
            }

            pub fn from_name(name: &str) -> Option<$enum> {
                $enum::ALL.into_iter().find(|one| one.as_str() == name)
            }
        }
    };
}

/// What [`named!`](crate::named) writes.
pub trait Named: Copy + 'static {
    /// Every variant with its name.
    const CHOICES: &'static [(&'static str, Self)];
}

pub use crate::named;
