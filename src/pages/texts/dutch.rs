//! Dutch, in the polite form.

use crate::pages::language::Language;
use crate::pages::texts::{ScopeText, Template, Texts};

/// The Dutch table.
pub const DUTCH: Texts = Texts {
    language: Language::Dutch,

    error_in_title: Template("Fout: {}"),
    about_this_service: "Over deze dienst",
    privacy_policy: "Privacybeleid",
    terms_of_service: "Servicevoorwaarden",
    website: "Website",
    about_client: Template("Over {}"),
    opens_in_new_tab: "(opent in een nieuw tabblad)",
    there_is_a_problem: "Er is een probleem",
    cancel: "Annuleren",
    minutes,

    sign_in_title: "Inloggen",
    to_continue_to: Template("om door te gaan naar {}"),
    with_account_of_tenant: Template("met uw account bij {}"),
    username: "Gebruikersnaam",
    password: "Wachtwoord",
    sign_in: "Inloggen",
    wrong_credentials: "De gebruikersnaam of het wachtwoord is onjuist. Controleer beide en probeer het opnieuw.",
    too_many_attempts: Template("Er zijn te veel mislukte pogingen gedaan. Wacht {} en probeer het opnieuw."),
    page_expired: "Deze pagina was niet meer actueel, daarom bent u niet ingelogd. Probeer het opnieuw.",
    username_missing: "Vul uw gebruikersnaam in.",
    password_missing: "Vul uw wachtwoord in.",
    choose_account_title: "Kies een account",
    signed_in_here_as: Template("U bent hier ingelogd als {}."),
    continue_as: Template("Doorgaan als {}"),
    use_another_account: "Een ander account gebruiken",

    consent_title: "Toegang toestaan?",
    client_asks_for_access: Template("{} vraagt om toegang"),
    signed_in_as: Template("U bent ingelogd als {}."),
    not_you: "Bent u dit niet?",
    scopes_legend: "Gevraagde toegang",
    scope_required: "Altijd inbegrepen",
    scope_required_hint: "Zonder deze toegang werkt de applicatie niet.",
    scope_emphasized: "Let op",
    claims_heading: "De applicatie vraagt ook om deze gegevens over u",
    remember: "Mijn keuze onthouden",
    remember_hint: "U wordt pas weer iets gevraagd als de applicatie meer wil.",
    consent_hint: Template("Sta dit alleen toe als u {} vertrouwt. Uw wachtwoord wordt niet gedeeld."),
    allow: "Toestaan",
    deny: "Niet toestaan",
    session_changed: "Het account waarmee in deze browser is ingelogd, is gewijzigd terwijl deze pagina open was. Er is daarom \
                      niets gedaan. Controleer de gegevens opnieuw.",
    standard_scopes: [
        ScopeText { scope: "openid", name: "U herkennen", description: "Een kenmerk dat voor uw account staat." },
        ScopeText {
            scope: "profile",
            name: "Uw profiel bekijken",
            description: "Uw naam en, als u die hebt ingevuld, gegevens zoals foto, geboortedatum en taal.",
        },
        ScopeText {
            scope: "email",
            name: "Uw e-mailadres bekijken",
            description: "Het adres, en of het is geverifieerd.",
        },
        ScopeText { scope: "address", name: "Uw postadres bekijken", description: "Het adres in uw account." },
        ScopeText {
            scope: "phone",
            name: "Uw telefoonnummer bekijken",
            description: "Het nummer, en of het is geverifieerd.",
        },
        ScopeText {
            scope: "offline_access",
            name: "Toegang houden als u er niet bent",
            description: "De applicatie kan wat u hier toestaat ook gebruiken als u er niet mee werkt, totdat u het intrekt.",
        },
    ],
    standard_claims: [
        ("name", "Volledige naam"),
        ("given_name", "Voornaam"),
        ("family_name", "Achternaam"),
        ("middle_name", "Tweede voornaam"),
        ("nickname", "Roepnaam"),
        ("preferred_username", "Voorkeursgebruikersnaam"),
        ("profile", "Profielpagina"),
        ("picture", "Foto"),
        ("website", "Website"),
        ("email", "E-mailadres"),
        ("email_verified", "Of uw e-mailadres is geverifieerd"),
        ("gender", "Geslacht"),
        ("birthdate", "Geboortedatum"),
        ("zoneinfo", "Tijdzone"),
        ("locale", "Taal en regio"),
        ("phone_number", "Telefoonnummer"),
        ("phone_number_verified", "Of uw telefoonnummer is geverifieerd"),
        ("address", "Postadres"),
        ("updated_at", "Wanneer uw gegevens voor het laatst zijn gewijzigd"),
    ],

    sign_out_title: "Uitloggen?",
    client_asks_to_sign_out: Template("{} wil u uitloggen."),
    sign_out_hint: "Hiermee wordt u hier uitgelogd en in de applicaties die u in deze browser met dit account gebruikt.",
    sign_out: "Uitloggen",
    stay_signed_in: "Ingelogd blijven",
    signed_out_title: "U bent uitgelogd",
    signed_out_hint: "Als anderen dit apparaat ook gebruiken, sluit dan ook alle browservensters.",
    back_to_client: Template("Terug naar {}"),

    bad_request: "Dit verzoek kan niet worden voltooid",
    bad_request_advice: "Ga terug naar de applicatie en begin opnieuw. Als deze pagina weer verschijnt, moeten de ontwikkelaars \
                         van de applicatie de link of het formulier herstellen waarmee u hier bent gekomen.",
    forbidden: "Dit was niet toegestaan",
    forbidden_advice: "Het formulier kwam niet van onze pagina, of de pagina was verouderd. Ga terug naar de applicatie en begin \
                       opnieuw.",
    not_found: "Hier is geen pagina",
    not_found_advice: "Controleer het adres, of begin bij de applicatie die u wilt gebruiken.",
    method_not_allowed: "Deze pagina kan niet op deze manier worden gebruikt",
    method_not_allowed_advice: "Begin opnieuw bij de applicatie die u wilt gebruiken.",
    too_large: "Er is te veel tegelijk verzonden",
    too_large_advice: "Ga terug en begin opnieuw. Als deze pagina weer verschijnt, verzendt de applicatie meer dan wij \
                       accepteren.",
    too_many_requests: "Te veel pogingen",
    too_many_requests_advice: Template("Wacht {} om uw account te beschermen en probeer het daarna opnieuw."),
    internal: "Er is bij ons iets misgegaan",
    internal_advice: "Het ligt niet aan u. Probeer het over een ogenblik opnieuw.",
    unavailable: "We kunnen op dit moment niet antwoorden",
    unavailable_advice: "Dit is waarschijnlijk snel voorbij. Wacht even en probeer het opnieuw.",
    support_hint: "Geef deze gegevens door als u om hulp vraagt:",
    reference: "Referentie",
    reason_code: "Reden",
    for_developers: "Voor ontwikkelaars",
    to_start_page: "Naar de startpagina",

    form_post_title: "Een ogenblik",
    form_post_hint: "U gaat terug naar de applicatie. Kies ‘Doorgaan’ als er niets gebeurt.",
    form_post_continue: "Doorgaan",

    home_title: "Inlogdienst",
    home_hint: Template("Dit is {}. Hiermee logt u in bij uw applicaties."),
    home_advice: "U hoeft hier niets te doen: open de applicatie die u wilt gebruiken en log daar in.",
};

fn minutes(count: u32) -> String {
    match count {
        1 => String::from("1 minuut"),
        _ => format!("{count} minuten"),
    }
}
