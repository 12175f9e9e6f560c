//! The keys of an object as a table, which its reader and the reference follow.

/// Writes the function that reads an object, and what the reference says of its keys. A row is a
/// field: `field: kind(rule) or default;` is a key of that name, read by the method of
/// [`Walker`](super::walker::Walker) that is called like its kind; `field => value;` is anything
/// else. A row may use the fields above it. Before it stand lines of the reference, as `keys |
/// meaning | default`, with an empty one between two; a row that has none is in the line above it.
#[macro_export]
macro_rules! key_table {
    (
        $(#[$attribute:meta])*
        $visibility:vis fn $read:ident($walker:ident $(, $given:ident: $type:ty)*) -> $object:ident;
        pub const $reference:ident;
        $($(#[doc = $line:literal])*
            $field:ident
            $(: $kind:ident $(($($rule:expr),*))? $(or $default:expr)?)?
            $(=> $value:expr)?;)*
    ) => {
        $(#[$attribute])*
        $visibility fn $read($walker: &mut Walker<'_> $(, $given: $type)*) -> $object {
            $(let $field =
                $($walker.$kind(stringify!($field) $($(, $rule)*)?) $(.unwrap_or($default))?)?
                $($value)?;)*
            $object { $($field),* }
        }

        /// What the reference says of the keys, a paragraph each.
        pub const $reference: &str = concat!($($($line, "\n",)* "\n",)*);
    };
}

pub use crate::key_table;
