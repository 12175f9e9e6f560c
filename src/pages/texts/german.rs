//! German, in the polite form.

use crate::pages::language::Language;
use crate::pages::texts::{ScopeText, Template, Texts};

/// The German table.
pub const GERMAN: Texts = Texts {
    language: Language::German,

    error_in_title: Template("Fehler: {}"),
    about_this_service: "Über diesen Dienst",
    privacy_policy: "Datenschutz",
    terms_of_service: "Nutzungsbedingungen",
    website: "Website",
    about_client: Template("Über {}"),
    opens_in_new_tab: "(öffnet einen neuen Tab)",
    there_is_a_problem: "Das hat nicht geklappt",
    cancel: "Abbrechen",
    minutes,

    sign_in_title: "Anmelden",
    to_continue_to: Template("weiter zu {}"),
    with_account_of_tenant: Template("mit Ihrem Konto bei {}"),
    username: "Benutzername",
    password: "Passwort",
    sign_in: "Anmelden",
    wrong_credentials: "Benutzername oder Passwort ist falsch. Bitte prüfen Sie beides und versuchen Sie es noch einmal.",
    too_many_attempts: Template(
        "Es gab zu viele Fehlversuche. Bitte warten Sie {} und versuchen Sie es dann noch einmal.",
    ),
    page_expired: "Diese Seite war nicht mehr aktuell, deshalb wurden Sie nicht angemeldet. Bitte versuchen Sie es noch einmal.",
    username_missing: "Geben Sie Ihren Benutzernamen ein.",
    password_missing: "Geben Sie Ihr Passwort ein.",
    choose_account_title: "Konto auswählen",
    signed_in_here_as: Template("Sie sind hier als {} angemeldet."),
    continue_as: Template("Weiter als {}"),
    use_another_account: "Anderes Konto verwenden",

    consent_title: "Zugriff erlauben?",
    client_asks_for_access: Template("{} bittet um Zugriff"),
    signed_in_as: Template("Sie sind als {} angemeldet."),
    not_you: "Nicht Ihr Konto?",
    scopes_legend: "Gewünschter Zugriff",
    scope_required: "Immer enthalten",
    scope_required_hint: "Ohne diese Angabe funktioniert die Anwendung nicht.",
    scope_emphasized: "Bitte beachten",
    claims_heading: "Außerdem bittet die Anwendung um diese Angaben über Sie",
    remember: "Meine Entscheidung merken",
    remember_hint: "Sie werden erst wieder gefragt, wenn die Anwendung mehr möchte.",
    consent_hint: Template("Erlauben Sie das nur, wenn Sie {} vertrauen. Ihr Passwort wird nicht weitergegeben."),
    allow: "Erlauben",
    deny: "Nicht erlauben",
    session_changed: "Die Anmeldung in diesem Browser hat sich geändert, während diese Seite offen war. Es ist nichts \
                      geschehen. Bitte prüfen Sie die Angaben noch einmal.",
    standard_scopes: [
        ScopeText {
            scope: "openid",
            name: "Sie wiedererkennen",
            description: "Eine Kennung, die für Ihr Konto steht.",
        },
        ScopeText {
            scope: "profile",
            name: "Ihr Profil sehen",
            description: "Ihr Name und, soweit Sie sie angegeben haben, Angaben wie Bild, Geburtstag und Sprache.",
        },
        ScopeText {
            scope: "email",
            name: "Ihre E-Mail-Adresse sehen",
            description: "Die Adresse und ob sie bestätigt ist.",
        },
        ScopeText { scope: "address", name: "Ihre Postanschrift sehen", description: "Die Anschrift aus Ihrem Konto." },
        ScopeText {
            scope: "phone",
            name: "Ihre Telefonnummer sehen",
            description: "Die Nummer und ob sie bestätigt ist.",
        },
        ScopeText {
            scope: "offline_access",
            name: "Auch in Ihrer Abwesenheit Zugriff haben",
            description: "Die Anwendung kann das, was Sie hier erlauben, auch nutzen, wenn Sie gerade nicht mit ihr arbeiten, \
                          bis Sie es widerrufen.",
        },
    ],
    standard_claims: [
        ("name", "Vollständiger Name"),
        ("given_name", "Vorname"),
        ("family_name", "Nachname"),
        ("middle_name", "Weiterer Vorname"),
        ("nickname", "Rufname"),
        ("preferred_username", "Bevorzugter Benutzername"),
        ("profile", "Profilseite"),
        ("picture", "Bild"),
        ("website", "Internetseite"),
        ("email", "E-Mail-Adresse"),
        ("email_verified", "Ob Ihre E-Mail-Adresse bestätigt ist"),
        ("gender", "Geschlecht"),
        ("birthdate", "Geburtsdatum"),
        ("zoneinfo", "Zeitzone"),
        ("locale", "Sprache und Region"),
        ("phone_number", "Telefonnummer"),
        ("phone_number_verified", "Ob Ihre Telefonnummer bestätigt ist"),
        ("address", "Postanschrift"),
        ("updated_at", "Wann Ihre Angaben zuletzt geändert wurden"),
    ],

    sign_out_title: "Abmelden?",
    client_asks_to_sign_out: Template("{} möchte Sie abmelden."),
    sign_out_hint: "Damit endet Ihre Anmeldung hier und in den Anwendungen, die Sie in diesem Browser damit nutzen.",
    sign_out: "Abmelden",
    stay_signed_in: "Angemeldet bleiben",
    signed_out_title: "Sie sind abgemeldet",
    signed_out_hint: "Wenn auch andere dieses Gerät benutzen, schließen Sie bitte zusätzlich alle Browserfenster.",
    back_to_client: Template("Zurück zu {}"),

    // Signing out of the applications as well
    applications_sign_out: "Auch die Anwendungen, die Sie mit dieser Anmeldung genutzt haben, werden jetzt abgemeldet.",
    signing_out_of: Template("Abmeldung bei {}"),
    going_back_to: Template("Sie werden gleich zurück zu {} geleitet."),

    bad_request: "Diese Anfrage lässt sich nicht ausführen",
    bad_request_advice: "Gehen Sie zurück zur Anwendung und beginnen Sie von vorn. Erscheint diese Seite wieder, müssen die \
                         Entwickler der Anwendung den Link oder das Formular berichtigen, über das Sie hierhergekommen sind.",
    forbidden: "Das war nicht erlaubt",
    forbidden_advice: "Das Formular kam nicht von unserer Seite, oder die Seite war veraltet. Gehen Sie zurück zur Anwendung und \
                       beginnen Sie von vorn.",
    not_found: "Hier gibt es keine Seite",
    not_found_advice: "Prüfen Sie die Adresse, oder beginnen Sie bei der Anwendung, die Sie nutzen möchten.",
    method_not_allowed: "So lässt sich diese Seite nicht benutzen",
    method_not_allowed_advice: "Beginnen Sie noch einmal bei der Anwendung, die Sie nutzen möchten.",
    too_large: "Es wurde zu viel auf einmal gesendet",
    too_large_advice: "Gehen Sie zurück und beginnen Sie von vorn. Erscheint diese Seite wieder, sendet die Anwendung mehr, als \
                       wir annehmen.",
    too_many_requests: "Zu viele Versuche",
    too_many_requests_advice: Template(
        "Zum Schutz Ihres Kontos warten Sie bitte {} und versuchen Sie es dann noch einmal.",
    ),
    internal: "Bei uns ist etwas schiefgegangen",
    internal_advice: "Es liegt nicht an Ihnen. Bitte versuchen Sie es gleich noch einmal.",
    unavailable: "Wir können gerade nicht antworten",
    unavailable_advice: "Das sollte bald vorbei sein. Bitte warten Sie einen Moment und versuchen Sie es noch einmal.",
    support_hint: "Wenn Sie um Hilfe bitten, geben Sie bitte diese Angaben weiter:",
    reference: "Vorgang",
    reason_code: "Grund",
    for_developers: "Für Entwickler",
    to_start_page: "Zur Startseite",

    form_post_title: "Einen Moment",
    form_post_hint: "Sie kehren zur Anwendung zurück. Wenn nichts geschieht, wählen Sie bitte „Weiter“.",
    form_post_continue: "Weiter",

    home_title: "Anmeldedienst",
    home_hint: Template("Das ist {}. Hier melden Sie sich bei Ihren Anwendungen an."),
    home_advice: "Sie brauchen hier nichts zu tun: Öffnen Sie die Anwendung, die Sie nutzen möchten, und wählen Sie dort die \
                  Anmeldung.",
};

fn minutes(count: u32) -> String {
    match count {
        1 => String::from("1 Minute"),
        _ => format!("{count} Minuten"),
    }
}
