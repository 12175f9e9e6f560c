//! Settings of clients that RFC 9700 advises against, and the log's line of who has them.

/// What one of them is called. It is none where `GATEPOST_CLIENT_ASSERTION_AUDIENCE` is `issuer`.
pub const TOKEN_ENDPOINT_AS_AUDIENCE: &str = "client assertions for the token endpoint's URL";

/// One of them, and who is registered for it.
pub struct WeakUse {
    pub setting: String,
    /// The first of the clients' names, as text has them, at most [`NAMED_CLIENTS`]. Behind a name
    /// in brackets: until when it may use the setting's legacy flow, and when it last did.
    pub client_ids: Vec<String>,
    pub clients: u64,
}

/// How many clients are named per setting; the others are counted.
pub const NAMED_CLIENTS: u64 = 10;

/// The line; `None` when nothing weak is in use. `in_frames` says that cookies are `SameSite=None`.
pub fn line(uses: &[WeakUse], in_frames: bool) -> Option<String> {
    let mut parts: Vec<String> = uses.iter().map(part_of_line).collect();
    if in_frames {
        parts.push(String::from("cookies with SameSite=None"));
    }
    (!parts.is_empty()).then(|| format!("weak settings in use: {}", parts.join("; ")))
}

fn part_of_line(one: &WeakUse) -> String {
    let named = one.client_ids.join(", ");
    let others = one.clients.saturating_sub(one.client_ids.len() as u64);
    let rest = if others == 0 {
        String::new()
    } else {
        format!(" and {others} more")
    };
    format!("{} ({named}{rest})", one.setting)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(setting: &str, client_ids: &[&str], clients: u64) -> WeakUse {
        WeakUse {
            setting: setting.to_owned(),
            client_ids: client_ids.iter().map(ToString::to_string).collect(),
            clients,
        }
    }

    #[test]
    fn where_nothing_is_weak_nothing_is_said() {
        assert_eq!(line(&[], false), None);
    }

    #[test]
    fn every_use_is_named_with_its_clients_and_the_rest_is_counted() {
        let uses = [
            used("password grant", &["old"], 1),
            used("refresh tokens that are reused", &["a", "b"], 4_012),
        ];
        let password = "weak settings in use: password grant (old)";
        let both = format!("{password}; refresh tokens that are reused (a, b and 4010 more)");
        let table: [(&[WeakUse], bool, String); 4] = [
            (&uses[..1], false, String::from(password)),
            (&uses, false, both.clone()),
            (&uses, true, format!("{both}; cookies with SameSite=None")),
            (
                &[],
                true,
                String::from("weak settings in use: cookies with SameSite=None"),
            ),
        ];
        for (uses, in_frames, expected) in table {
            assert_eq!(line(uses, in_frames), Some(expected));
        }
    }
}
