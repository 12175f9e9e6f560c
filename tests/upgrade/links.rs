//! A link of each kind that is on its way during an upgrade: not opened yet, or opened in a browser
//! that has not sent its form.

use std::sync::atomic::{AtomicU8, Ordering};

use super::World;
use super::carried::{
    Begin, Carried, client_data, encoded, password_at, request, signed_in, signs_in,
};
use super::passkeys::{Key, attested, data, object};
use super::support::http::{Answer, Browser};
use super::support::phone::{Phone, add_app, recovery_codes};
use super::support::waiting::{SOON, await_that};

/// Links that every build makes.
pub(crate) const PRINTED: [(&str, Begin); 4] = [
    ("link", |world, user| RESET.unopened(world, user)),
    ("opened link", |world, user| RESET.opened(world, user)),
    ("enrolling link", |world, user| {
        ENROLLING.unopened(world, user)
    }),
    ("opened enrolling link", |world, user| {
        ENROLLING.opened(world, user)
    }),
];

/// What only a build that sends letters can begin.
pub(crate) const SENT: [(&str, Begin); 15] = [
    ("passkey link", |world, user| PASSKEY.unopened(world, user)),
    ("opened passkey link", |world, user| {
        PASSKEY.opened(world, user)
    }),
    ("passkey letter", |world, user| {
        PASSKEY_LETTER.unopened(world, user)
    }),
    ("opened passkey letter", |world, user| {
        PASSKEY_LETTER.opened(world, user)
    }),
    ("letter", |world, user| LETTER.unopened(world, user)),
    ("opened letter", |world, user| LETTER.opened(world, user)),
    ("letter for who forgot", |world, user| {
        FORGOTTEN.unopened(world, user)
    }),
    ("opened letter for who forgot", |world, user| {
        FORGOTTEN.opened(world, user)
    }),
    ("opened letter and a factor", opened_letter_and_a_factor),
    ("letter to an address", |world, user| {
        ADDRESS.unopened(world, user)
    }),
    ("opened letter to an address", |world, user| {
        ADDRESS.opened(world, user)
    }),
    ("sign-up link", |world, user| SIGN_UP.unopened(world, user)),
    ("opened sign-up link", |world, user| {
        SIGN_UP.opened(world, user)
    }),
    ("sign-up letter", |world, user| JOIN.unopened(world, user)),
    ("opened sign-up letter", |world, user| {
        JOIN.opened(world, user)
    }),
];

const NEW_PASSWORD: &str = "a password of her own choosing";
const NEW_PASSWORDS: [(&str, &str); 2] = [
    ("new_password", NEW_PASSWORD),
    ("new_password_again", NEW_PASSWORD),
];

/// How a link comes about, and what its page is for.
#[derive(Clone, Copy)]
struct Kind {
    make: fn(&World, &str) -> String,
    browser: fn(&World, &str) -> Browser,
    /// Sends the form of the page, for that user.
    take: fn(&World, &mut Browser, &Answer, &str),
    /// Whether the link makes or changes something once.
    works_once: bool,
}

const RESET: Kind = Kind {
    make: |world, user| printed(world, &["user", "reset", user]),
    browser: stranger,
    take: set_password,
    works_once: true,
};

const ENROLLING: Kind = Kind {
    make: |world, user| printed(world, &["user", "reset", user, "--enrol"]),
    take: enrol,
    ..RESET
};

const PASSKEY: Kind = Kind {
    make: |world, user| printed(world, &["user", "reset", user, "--passkey"]),
    take: make_passkey,
    ..RESET
};

const PASSKEY_LETTER: Kind = Kind {
    make: |world, user| {
        printed(world, &["user", "reset", user, "--passkey", "--mail"]);
        link_sent_to(world, &address(user))
    },
    ..PASSKEY
};

const LETTER: Kind = Kind {
    make: |world, user| {
        printed(world, &["user", "reset", user, "--mail"]);
        link_sent_to(world, &address(user))
    },
    ..RESET
};

const FORGOTTEN: Kind = Kind {
    make: forget,
    ..RESET
};

const ADDRESS: Kind = Kind {
    make: ask_for_address,
    browser: signed_in,
    take: take_address,
    works_once: true,
};

const SIGN_UP: Kind = Kind {
    make: |world, _| printed(world, &["signup", "make", "--uses", "1", "--for", "1d"]),
    browser: stranger,
    take: |world, browser, page, user| {
        let letter = sign_up(world, browser, page, user);
        let page = browser.visit(&letter);
        join(world, browser, &page, user);
    },
    works_once: false,
};

const JOIN: Kind = Kind {
    make: |world, user| {
        let (mut browser, link) = (stranger(world, user), (SIGN_UP.make)(world, user));
        let page = browser.visit(&link);
        sign_up(world, &mut browser, &page, user)
    },
    take: join,
    ..RESET
};

impl Kind {
    fn unopened(self, world: &World, user: &str) -> Carried {
        let (link, user) = ((self.make)(world, user), user.to_owned());
        Box::new(move |world| {
            let mut browser = (self.browser)(world, &user);
            let page = browser.visit(&link);
            self.finish(world, &mut browser, &page, &link, &user);
        })
    }

    fn opened(self, world: &World, user: &str) -> Carried {
        let (link, user) = ((self.make)(world, user), user.to_owned());
        let mut browser = (self.browser)(world, &user);
        let page = browser.visit(&link);
        Box::new(move |world| self.finish(world, &mut browser, &page, &link, &user))
    }

    fn finish(self, world: &World, browser: &mut Browser, page: &Answer, link: &str, user: &str) {
        (self.take)(world, browser, page, user);
        if self.works_once {
            let again = browser.visit(link);
            again.assert_error_page(400, "GP1810", "used");
        }
    }
}

/// The address of a user.
pub(crate) fn address(user: &str) -> String {
    format!("{user}@example.com")
}

/// Asks from where nobody else does: from one place, few letters are asked for in an hour.
fn stranger(world: &World, _: &str) -> Browser {
    static LAST: AtomicU8 = AtomicU8::new(0);
    let source = format!("192.0.2.{}", LAST.fetch_add(1, Ordering::Relaxed));
    let mut browser = world.gatepost.browser();
    browser.headers = vec![(String::from("X-Forwarded-For"), source)];
    browser
}

fn printed(world: &World, command: &[&str]) -> String {
    world.gatepost.run_well(command, "").trim().to_owned()
}

fn link_sent_to(world: &World, address: &str) -> String {
    let mut link = None;
    await_that(&format!("a letter to {address}"), SOON, || {
        let letters = (1..=world.mailbox.count()).map(|number| world.mailbox.letter(number));
        // Notices have no link.
        let mut of_user = letters.filter(|one| one.to == [address] && one.text.contains("?l="));
        link = of_user.next().map(|letter| letter.link().to_owned());
        link.is_some()
    });
    link.unwrap()
}

fn set_password(world: &World, browser: &mut Browser, page: &Answer, user: &str) {
    page.assert_says("Choose your password");
    let answer = browser.submit(page, &NEW_PASSWORDS);
    assert_eq!(answer.status, 303, "{}", answer.text());
    assert!(signs_in(world, user, NEW_PASSWORD));
}

fn enrol(world: &World, browser: &mut Browser, page: &Answer, user: &str) {
    let code = Phone::from_page(page, 0).code(0);
    let fields = [&NEW_PASSWORDS[..], &[("code", code.as_str())]].concat();
    recovery_codes(&browser.submit(page, &fields));
    let mut browser = world.gatepost.browser();
    let page = browser.visit(&request());
    let answer = browser.submit(&page, &[("username", user), ("password", NEW_PASSWORD)]);
    answer.assert_says("Confirm that it is you");
}

fn make_passkey(world: &World, browser: &mut Browser, page: &Answer, user: &str) {
    page.assert_says("Set up your passkey");
    let client_data = encoded(&client_data(world, page, "webauthn.create"));
    let attested = attested(user.as_bytes(), &Key::es256().cose());
    let object = encoded(&object(&data("localhost", 0x45, 0, &attested)));
    let fields = [
        ("client_data", client_data.as_str()),
        ("attestation_object", &object),
        ("name", "Mine"),
    ];
    let answer = browser.submit(page, &fields);
    let sign_in = browser.follow(answer);
    sign_in.assert_says("Your passkey is set up.");
}

/// Asks for a letter on the way to `conf1`.
fn forget(world: &World, user: &str) -> String {
    let mut browser = stranger(world, user);
    let sign_in = browser.visit(&request());
    let forgotten = sign_in.attribute("/login/forgotten", "href").unwrap();
    let page = browser.visit(&forgotten);
    let answer = browser.submit(&page, &[("name", user)]);
    assert!(answer.text().contains("is on its way"), "{}", answer.text());
    link_sent_to(world, &address(user))
}

fn opened_letter_and_a_factor(world: &World, user: &str) -> Carried {
    let (phone, _) = add_app(&mut signed_in(world, user), 0);
    let link = forget(world, user);
    let mut browser = world.gatepost.browser();
    let page = browser.visit(&link);
    let answer = browser.submit(&page, &[("code", &phone.code(0))]);
    let page = browser.follow(answer);
    let user = user.to_owned();
    Box::new(move |world| {
        let answer = browser.submit(&page, &NEW_PASSWORDS);
        assert_eq!(answer.status, 303, "{}", answer.text());
        let asked = password_at(&mut world.gatepost.browser(), &user, &request());
        asked.assert_says_not_for("the password is another", "Confirm that it is you");
        let again = browser.visit(&link);
        again.assert_error_page(400, "GP1810", "used");
    })
}

fn ask_for_address(world: &World, user: &str) -> String {
    let mut browser = signed_in(world, user);
    let account = browser.visit("/account");
    let new = address(&format!("new-{user}"));
    let fields = [
        ("decision", "change_address"),
        ("new_address", new.as_str()),
    ];
    let answer = browser.submit(&account, &fields);
    assert!(answer.text().contains("is on its way"), "{}", answer.text());
    link_sent_to(world, &new)
}

fn take_address(_: &World, browser: &mut Browser, page: &Answer, user: &str) {
    let new = address(&format!("new-{user}"));
    assert!(page.text().contains(&new), "{}", page.text());
    let done = browser.submit(page, &[]);
    done.assert_says("address was changed");
}

/// Asks for a letter by which a new user signs up, and answers its link.
fn sign_up(world: &World, browser: &mut Browser, page: &Answer, user: &str) -> String {
    let new = address(&format!("new-{user}"));
    let answer = browser.submit(page, &[("address", &new)]);
    assert!(answer.text().contains("is on its way"), "{}", answer.text());
    link_sent_to(world, &new)
}

fn join(world: &World, browser: &mut Browser, page: &Answer, user: &str) {
    let new = format!("new-{user}");
    let fields = [
        &[("username", new.as_str()), ("name", "New")],
        &NEW_PASSWORDS[..],
    ];
    let answer = browser.submit(page, &fields.concat());
    assert_eq!(answer.status, 303, "{}", answer.text());
    assert!(signs_in(world, &new, NEW_PASSWORD));
}
