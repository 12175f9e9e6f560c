//! Italian, in the polite form.

use crate::pages::language::Language;
use crate::pages::texts::{ScopeText, Template, Texts};

/// The Italian table.
pub const ITALIAN: Texts = Texts {
    language: Language::Italian,

    error_in_title: Template("Errore: {}"),
    about_this_service: "Informazioni su questo servizio",
    privacy_policy: "Informativa sulla privacy",
    terms_of_service: "Termini di servizio",
    website: "Sito web",
    about_client: Template("Informazioni su {}"),
    opens_in_new_tab: "(si apre in una nuova scheda)",
    there_is_a_problem: "Si è verificato un problema",
    cancel: "Annulla",
    minutes,

    sign_in_title: "Accedi",
    to_continue_to: Template("per continuare su {}"),
    with_account_of_tenant: Template("con il Suo account {}"),
    username: "Nome utente",
    password: "Password",
    sign_in: "Accedi",
    wrong_credentials: "Il nome utente o la password non sono corretti. Verificare entrambi e riprovare.",
    too_many_attempts: Template("Ci sono stati troppi tentativi non riusciti. Attendere {} e riprovare."),
    page_expired: "Questa pagina non era più aggiornata, quindi l’accesso non è stato eseguito. Riprovare.",
    username_missing: "Inserire il nome utente.",
    password_missing: "Inserire la password.",
    choose_account_title: "Scegliere un account",
    signed_in_here_as: Template("L’accesso qui è stato eseguito come {}."),
    continue_as: Template("Continua come {}"),
    use_another_account: "Usa un altro account",

    consent_title: "Consentire l’accesso?",
    client_asks_for_access: Template("{} chiede l’accesso"),
    signed_in_as: Template("L’accesso è stato eseguito come {}."),
    not_you: "Non è Lei?",
    scopes_legend: "Accesso richiesto",
    scope_required: "Sempre incluso",
    scope_required_hint: "Senza questo accesso l’applicazione non può funzionare.",
    scope_emphasized: "Attenzione",
    claims_heading: "Chiede inoltre questi dati che La riguardano",
    remember: "Ricorda la mia decisione",
    remember_hint: "La richiesta verrà ripetuta solo quando l’applicazione chiederà altro.",
    consent_hint: Template(
        "Consentire l’accesso solo se si ritiene affidabile {}. La Sua password non viene condivisa.",
    ),
    allow: "Consenti",
    deny: "Non consentire",
    session_changed: "L’accesso in questo browser è cambiato mentre la pagina era aperta, quindi non è stato fatto nulla. \
                      Verificare di nuovo.",
    standard_scopes: [
        ScopeText {
            scope: "openid",
            name: "Riconoscerla",
            description: "Un identificativo che rappresenta il Suo account.",
        },
        ScopeText {
            scope: "profile",
            name: "Vedere il Suo profilo",
            description: "Il Suo nome e, se indicati, dati come immagine, data di nascita e lingua.",
        },
        ScopeText {
            scope: "email",
            name: "Vedere il Suo indirizzo e-mail",
            description: "L’indirizzo, e se è verificato.",
        },
        ScopeText {
            scope: "address",
            name: "Vedere il Suo indirizzo postale",
            description: "L’indirizzo presente nel Suo account.",
        },
        ScopeText {
            scope: "phone",
            name: "Vedere il Suo numero di telefono",
            description: "Il numero, e se è verificato.",
        },
        ScopeText {
            scope: "offline_access",
            name: "Mantenere l’accesso in Sua assenza",
            description: "L’applicazione può usare ciò che Lei consente qui anche quando non la sta utilizzando, fino alla \
                          revoca.",
        },
    ],
    standard_claims: [
        ("name", "Nome completo"),
        ("given_name", "Nome"),
        ("family_name", "Cognome"),
        ("middle_name", "Secondo nome"),
        ("nickname", "Soprannome"),
        ("preferred_username", "Nome utente preferito"),
        ("profile", "Pagina del profilo"),
        ("picture", "Immagine"),
        ("website", "Sito web"),
        ("email", "Indirizzo e-mail"),
        ("email_verified", "Se il Suo indirizzo e-mail è verificato"),
        ("gender", "Genere"),
        ("birthdate", "Data di nascita"),
        ("zoneinfo", "Fuso orario"),
        ("locale", "Lingua e area geografica"),
        ("phone_number", "Numero di telefono"),
        ("phone_number_verified", "Se il Suo numero di telefono è verificato"),
        ("address", "Indirizzo postale"),
        ("updated_at", "Data dell’ultima modifica dei Suoi dati"),
    ],

    sign_out_title: "Uscire dall’account?",
    client_asks_to_sign_out: Template("{} chiede di uscire dall’account."),
    sign_out_hint: "La sessione terminerà qui e nelle applicazioni che Lei usa con essa in questo browser.",
    sign_out: "Esci",
    stay_signed_in: "Rimani connesso",
    signed_out_title: "Disconnessione effettuata",
    signed_out_hint: "Se altre persone usano questo dispositivo, chiudere anche tutte le finestre del browser.",
    back_to_client: Template("Torna a {}"),

    bad_request: "Questa richiesta non può essere completata",
    bad_request_advice: "Tornare all’applicazione e ricominciare. Se questa pagina ricompare, gli sviluppatori dell’applicazione \
                         devono correggere il link o il modulo che ha portato qui.",
    forbidden: "Questa operazione non era consentita",
    forbidden_advice: "Il modulo non proveniva dalla nostra pagina oppure la pagina non era aggiornata. Tornare \
                       all’applicazione e ricominciare.",
    not_found: "Qui non c’è nessuna pagina",
    not_found_advice: "Verificare l’indirizzo o iniziare dall’applicazione che si desidera usare.",
    method_not_allowed: "Questa pagina non può essere usata in questo modo",
    method_not_allowed_advice: "Ricominciare dall’applicazione che si desidera usare.",
    too_large: "Sono stati inviati troppi dati in una volta",
    too_large_advice: "Tornare indietro e ricominciare. Se questa pagina ricompare, l’applicazione invia più di quanto \
                       accettiamo.",
    too_many_requests: "Troppi tentativi",
    too_many_requests_advice: Template("Per proteggere il Suo account, attendere {} e riprovare."),
    internal: "Si è verificato un errore da parte nostra",
    internal_advice: "Non dipende da Lei. Riprovare tra poco.",
    unavailable: "Al momento non possiamo rispondere",
    unavailable_advice: "Il problema dovrebbe risolversi presto. Attendere qualche istante e riprovare.",
    support_hint: "Quando si chiede assistenza, comunicare questi dati:",
    reference: "Riferimento",
    reason_code: "Motivo",
    for_developers: "Per gli sviluppatori",
    to_start_page: "Alla pagina iniziale",

    form_post_title: "Un momento",
    form_post_hint: "Sta tornando all’applicazione. Se non succede nulla, scegliere “Continua”.",
    form_post_continue: "Continua",

    home_title: "Servizio di accesso",
    home_hint: Template("Questo è {}. Permette di accedere alle Sue applicazioni."),
    home_advice: "Qui non c’è nulla da fare: aprire l’applicazione che si desidera usare e scegliere di accedere da lì.",
};

fn minutes(count: u32) -> String {
    match count {
        1 => String::from("1 minuto"),
        _ => format!("{count} minuti"),
    }
}
