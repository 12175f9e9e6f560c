//! Pages about a second factor: the one that asks for it, the one that sets up an app that shows
//! codes, and the recovery codes.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use qrcodegen::{QrCode, QrCodeEcc};

use crate::pages::account::Holdings;
use crate::pages::form_problem::{FormProblem, told};
use crate::pages::frame::{
    PageForm, about, button, described_by, headed, hidden, in_fours, link_button, primary_button,
    script, submit,
};
use crate::pages::icons::{APP, PASSKEY, RECOVERY_CODES, icon};
use crate::pages::login::{SignInFor, cancel, card};
use crate::pages::moment::at;
use crate::pages::texts::Texts;
use gatepost_protocol::login::second_factor::{FactorKind, to_base32};
use gatepost_protocol::words::joined::joined;
use gatepost_protocol::words::secret::SecretBytes;
use gatepost_store::authenticators::Authenticator;

/// What the page that asks for another factor takes.
pub struct WantedFactor<'a> {
    pub takes_codes: bool,
    /// What the browser is asked for a passkey by, where one will do.
    pub passkey: Option<&'a str>,
    pub may_skip: bool,
}

/// Asks for another factor. The form posts `form_token` and `code`, or `decision` as `not_now` or
/// `cancel`; another one an answer to `passkey`.
pub fn page(
    form: &PageForm<'_>,
    purpose: SignInFor<'_>,
    wanted: WantedFactor<'_>,
    problem: Option<FormProblem>,
) -> Markup {
    let texts = form.chrome.texts;
    let WantedFactor {
        takes_codes,
        passkey,
        may_skip,
    } = wanted;
    let (decision, label) = if may_skip {
        ("not_now", texts.not_now)
    } else {
        ("cancel", texts.cancel)
    };
    let ways = html! {
        (told(texts, problem))
        @if takes_codes {
            (form.of(&html! {
                (code(texts.second_factor_code, Some(texts.second_factor_hint), problem))
                (submit(texts.second_factor_confirm))
            }))
        }
        @if let Some(options) = passkey {
            @if !takes_codes { (without_passkey(texts)) }
            (passkey_form(form, options, !takes_codes))
        }
        (form.of(&html! { div .actions .more { (quiet_button(decision, label)) } }))
    };
    card(
        form,
        purpose,
        texts.second_factor_title,
        problem.is_some(),
        &ways,
    )
}

fn quiet_button(decision: &str, label: &str) -> Markup {
    html! { button .quiet type="submit" name="decision" value=(decision) { (label) } }
}

/// The script shows it where the browser knows passkeys.
fn passkey_button(decision: &str, label: &str) -> Markup {
    html! {
        button type="submit" name="decision" value=(decision) hidden data-needs-passkey { (label) }
    }
}

/// Asks the browser for a passkey by `options` (WebAuthn §5.1.8,
/// `PublicKeyCredentialRequestOptionsJSON`). Posts `form_token`, `decision` as `passkey`, and what
/// the browser answers, in base64url: `id`, `client_data`, `authenticator_data`, `signature`,
/// `user_handle`. Hidden where there is no script or no passkey.
pub(super) fn passkey_form(form: &PageForm<'_>, options: &str, is_primary: bool) -> Markup {
    html! {
        (by_passkey(form, options, &html! {
            (hidden("decision", "passkey"))
            @for name in ["id", "client_data", "authenticator_data", "signature", "user_handle"] {
                (hidden(name, ""))
            }
            div .actions .more[!is_primary] {
                button .primary[is_primary] type="submit" { (form.chrome.texts.use_passkey) }
            }
        }))
        (script(form.chrome, "passkey.js"))
    }
}

/// A form that the script fills with what the browser answers to `options`, and then sends.
fn by_passkey(form: &PageForm<'_>, options: &str, fields: &Markup) -> Markup {
    html! {
        form method="post" action=(form.action) data-passkey=(options) hidden data-needs-passkey {
            (form.token())
            (fields)
        }
    }
}

/// What is missing where nothing but a passkey leads on. The script takes away what is not.
fn without_passkey(texts: &Texts) -> Markup {
    html! {
        p data-without-script { (texts.passkey_needs_script) }
        p data-without-passkey hidden { (texts.passkey_needs_browser) }
    }
}

/// A passkey that is to be made.
pub struct NewPasskeyPage<'a> {
    /// What the browser is asked (WebAuthn §5.1.3, `PublicKeyCredentialCreationOptionsJSON`).
    pub options: &'a str,
    /// Whether a sign-in waits for it, which is declined without it.
    pub is_required: bool,
    /// Whether it is the person's first factor, with which everything else of theirs ends.
    pub is_first: bool,
}

/// Makes a passkey. The form posts `form_token`, `name`, `client_data`, `attestation_object`, and
/// `decision` as `add_passkey`; or the last as `cancel`, where a sign-in waits for it.
pub fn add_passkey_page(
    form: &PageForm<'_>,
    new: NewPasskeyPage<'_>,
    problem: Option<FormProblem>,
) -> Markup {
    let texts = form.chrome.texts;
    let card = html! {
        @if new.is_required { p .lead { (texts.factor_required) } }
        (making_passkey(texts, form, new.options, problem, &html! {
            (hidden("decision", "add_passkey"))
            @if new.is_first { p .hint { (texts.ends_all_else) } }
        }))
        @if new.is_required {
            (form.of_buttons(&quiet_button("cancel", texts.cancel)))
        } @else {
            p { a href=(form.action) { (texts.cancel) } }
        }
        (script(form.chrome, "passkey.js"))
    };
    headed(form.chrome, problem.is_some(), texts.add_passkey, &card)
}

/// Makes the passkey that somebody's link is for. The form posts `form_token`, `name`,
/// `client_data` and `attestation_object`.
pub fn passkey_link_page(
    form: &PageForm<'_>,
    username: &str,
    options: &str,
    problem: Option<FormProblem>,
) -> Markup {
    let texts = form.chrome.texts;
    let card = html! {
        p .lead { (about(texts.set_password_for, username)) }
        (making_passkey(texts, form, options, problem, &html! {}))
        (script(form.chrome, "passkey.js"))
    };
    headed(
        form.chrome,
        problem.is_some(),
        texts.set_passkey_title,
        &card,
    )
}

/// What makes a passkey by `options`, with what else the form has.
fn making_passkey(
    texts: &Texts,
    form: &PageForm<'_>,
    options: &str,
    problem: Option<FormProblem>,
    further: &Markup,
) -> Markup {
    html! {
        (told(texts, problem))
        (without_passkey(texts))
        (by_passkey(form, options, &html! {
            (hidden("client_data", ""))
            (hidden("attestation_object", ""))
            div .field {
                label for="name" { (texts.passkey_name) }
                input #name type="text" name="name" maxlength="60" autocomplete="off";
            }
            (further)
            (submit(texts.add_passkey))
        }))
    }
}

/// An app that shows codes, to be added.
#[derive(Clone, Copy)]
pub struct NewApp<'a> {
    /// What the QR code says.
    pub otpauth: &'a str,
    /// What is typed where none can be scanned.
    pub key: &'a str,
    pub sealed: &'a str,
    /// Whether a sign-in waits for it, which is declined without it.
    pub is_required: bool,
    /// Whether it is the person's first factor, with which everything else of theirs ends.
    pub is_first: bool,
    /// Whether a passkey would do, too.
    pub offers_passkey: bool,
}

/// The form posts `form_token`, `app`, `code`, and `decision` as `add_app`, `add_passkey` or
/// `cancel`; on the account page that is a link back.
pub fn add_app_page(form: &PageForm<'_>, new: NewApp<'_>, problem: Option<FormProblem>) -> Markup {
    let texts = form.chrome.texts;
    let card = html! {
        @if new.is_required { p .lead { (texts.factor_required) } }
        (told(texts, problem))
        (form.of(&html! {
            (setup(texts, new, problem))
            @if new.is_first { p .hint { (texts.ends_all_else) } }
            div .actions { (add_app_buttons(texts, form, new)) }
        }))
        @if new.offers_passkey { (script(form.chrome, "passkey.js")) }
    };
    headed(form.chrome, problem.is_some(), texts.add_app_title, &card)
}

fn add_app_buttons(texts: &Texts, form: &PageForm<'_>, new: NewApp<'_>) -> Markup {
    html! {
        (primary_button("add_app", texts.add_app))
        @if new.offers_passkey {
            button type="submit" name="decision" value="add_passkey" formnovalidate hidden
                data-needs-passkey {
                (texts.add_passkey)
            }
        }
        @if new.is_required { (cancel(texts)) } @else {
            a .button href=(form.action) { (texts.cancel) }
        }
    }
}

/// What sets an app up, in a form: `app` and `code`.
pub(super) fn setup(texts: &Texts, new: NewApp<'_>, problem: Option<FormProblem>) -> Markup {
    html! {
        p { (texts.scan_code) }
        @if let Ok(picture) = QrCode::encode_text(new.otpauth, QrCodeEcc::Medium) {
            (qr_code(texts, &picture))
        }
        p { (texts.key_by_hand) }
        p { code .key { (joined(" ", in_fours(new.key))) } }
        (hidden("app", new.sealed))
        (code(texts.code_now, None, problem))
    }
}

/// Shows recovery codes, once. The form posts `form_token`, `codes` (`sealed`: the codes under
/// seal), and `decision` as `save_codes`, or as `continue` where no address leads on.
pub fn recovery_page(
    form: &PageForm<'_>,
    codes: &[String],
    sealed: &str,
    way_on: Option<&str>,
) -> Markup {
    let texts = form.chrome.texts;
    let card = html! {
        p { (texts.recovery_hint) }
        ul .codes { @for one in codes { li { code { (one) } } } }
        (form.of(&html! {
            (hidden("codes", sealed))
            div .actions {
                @match way_on {
                    Some(address) => a .button .primary href=(address) { (texts.recovery_kept) },
                    None => (primary_button("continue", texts.recovery_kept)),
                }
                (button("save_codes", texts.save_codes))
            }
        }))
    };
    headed(form.chrome, false, texts.recovery_title, &card)
}

fn code(label: &str, hint: Option<&str>, problem: Option<FormProblem>) -> Markup {
    let is_wrong = problem.and_then(FormProblem::field) == Some("code");
    let descriptions = [is_wrong.then_some("problem"), hint.map(|_| "code-hint")];
    html! {
        div .field {
            label for="code" { (label) }
            input #code type="text" name="code" autocomplete="one-time-code" autocapitalize="none"
                autocorrect="off"
                spellcheck="false" required autofocus aria-invalid=[is_wrong.then_some("true")]
                aria-describedby=[described_by(descriptions)];
            @if let Some(hint) = hint { p #code-hint .hint { (hint) } }
        }
    }
}

/// Dark on light, whatever the page is: that is what cameras read. With the four empty modules
/// around it that they need.
fn qr_code(texts: &Texts, picture: &QrCode) -> Markup {
    let size = picture.size();
    let dark = (0..size)
        .flat_map(|y| (0..size).map(move |x| (x, y)))
        .filter(|(x, y)| picture.get_module(*x, *y));
    let path: String = dark
        .map(|(x, y)| format!("M{} {}h1v1h-1z", x + 4, y + 4))
        .collect();
    let whole = size + 8;
    html! {
        svg .qr-code viewBox={ "0 0 " (whole) " " (whole) } role="img" aria-label=(texts.qr_code)
            shape-rendering="crispEdges" {
            rect width=(whole) height=(whole) fill="#fff" {}
            path d=(path) fill="#000" {}
        }
    }
}

/// The part of the account page about them.
pub(super) fn factors(texts: &Texts, form: &PageForm<'_>, holdings: &Holdings<'_>) -> Markup {
    let Holdings {
        factors: all,
        has_password,
        has_passkeys,
        needs_passkey,
        recovery_codes_token: token,
        ..
    } = *holdings;
    let (codes, factors): (Vec<_>, Vec<_>) = all
        .iter()
        .partition(|one| one.kind == FactorKind::RecoveryCode);
    // A new app takes the place of the one there is.
    let add_app = if factors.iter().any(|one| is_app(one)) {
        texts.replace_app
    } else {
        texts.add_app_title
    };
    html! {
        section aria-labelledby="factors" {
            h2 #factors { (texts.factors_heading) }
            @if factors.is_empty() {
                p .hint { (texts.no_factors) }
            } @else {
                ul .items {
                    @for (index, one) in factors.iter().enumerate() {
                        @let id = format!("factor-{index}");
                        li {
                            div id=(id) { (factor(texts, one)) }
                            @if !needs_passkey {
                                (form.of(&html! {
                                    (hidden("factor", &factor_name(one)))
                                    (link_button("remove_factor", &id, texts.remove_factor))
                                }))
                            }
                        }
                    }
                }
                @if has_password {
                    p .hint {
                        (icon(RECOVERY_CODES))
                        (texts.recovery_codes_left.fill(&codes.len().to_string()))
                    }
                }
            }
            @if needs_passkey { p .hint { (texts.passkey_needed) } }
            (form.of_buttons(&html! {
                @if needs_passkey {
                    (passkey_button("sign_in_anew", texts.use_passkey))
                } @else {
                    @if has_password { (button("add_app", add_app)) }
                    @if has_passkeys { (passkey_button("add_passkey", texts.add_passkey)) }
                }
            }))
            @if has_password && !factors.is_empty() && !needs_passkey {
                (PageForm { token: token.to_owned(), ..form.clone() }
                    .of_buttons(&button("make_recovery_codes", texts.make_recovery_codes)))
            }
        }
    }
}

fn factor(texts: &Texts, one: &Authenticator) -> Markup {
    html! {
        p {
            (icon(if is_app(one) { APP } else { PASSKEY }))
            strong { bdi { (called(texts, one)) } }
        }
        @if one.name.is_some() { p .hint { (kind(texts, one)) } }
        p .hint { (at(texts, texts.added_on, one.created_at)) }
        @if let Some(used_at) = one.used_at {
            p .hint { (at(texts, texts.last_used_on, used_at)) }
        }
    }
}

/// What a factor is called for people: its name, else its kind.
pub fn called<'a>(texts: &'a Texts, one: &'a Authenticator) -> &'a str {
    one.name.as_deref().unwrap_or(kind(texts, one))
}

fn kind(texts: &Texts, one: &Authenticator) -> &'static str {
    if is_app(one) {
        texts.app_factor
    } else {
        texts.passkey_factor
    }
}

fn is_app(one: &Authenticator) -> bool {
    one.kind == FactorKind::Totp
}

/// What a factor is called in its form, and for operators: its kind and its id, in base64url.
pub fn factor_name(one: &Authenticator) -> String {
    format!("{}.{}", one.kind.as_str(), URL_SAFE_NO_PAD.encode(&one.id))
}

/// What the QR code says: `otpauth://totp/LABEL?secret=...&issuer=...`.
pub fn otpauth(brand: &str, username: &str, secret: &SecretBytes) -> String {
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let label = encoded(&format!("{brand}:{username}"));
    format!(
        "otpauth://totp/{label}?secret={}&issuer={}",
        to_base32(secret),
        encoded(brand)
    )
}
