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

        impl $enum {
            pub const ALL: [$enum; [$($name,)*].len()] = [$($enum::$variant,)*];

            pub const NAMED: [(&'static str, $enum); $enum::ALL.len()] =
                [$(($name, $enum::$variant),)*];

            pub const fn as_str(self) -> &'static str {
                match self { $($enum::$variant => $name,)* }
            }

            pub fn from_name(name: &str) -> Option<$enum> {
                $enum::ALL.into_iter().find(|one| one.as_str() == name)
            }
        }
    };
}

pub use crate::named;
