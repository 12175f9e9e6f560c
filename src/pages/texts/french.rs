//! French, in the polite form.

use crate::pages::language::Language;
use crate::pages::texts::{ScopeText, Template, Texts};

/// The French table.
pub const FRENCH: Texts = Texts {
    language: Language::French,

    error_in_title: Template("Erreur\u{a0}: {}"),
    about_this_service: "À propos de ce service",
    privacy_policy: "Règles de confidentialité",
    terms_of_service: "Conditions d’utilisation",
    website: "Site web",
    about_client: Template("À propos de {}"),
    opens_in_new_tab: "(s’ouvre dans un nouvel onglet)",
    there_is_a_problem: "Un problème est survenu",
    cancel: "Annuler",
    minutes,

    sign_in_title: "Connexion",
    to_continue_to: Template("pour continuer vers {}"),
    with_account_of_tenant: Template("avec votre compte {}"),
    username: "Nom d’utilisateur",
    password: "Mot de passe",
    sign_in: "Se connecter",
    wrong_credentials: "Le nom d’utilisateur ou le mot de passe est incorrect. Veuillez vérifier les deux et réessayer.",
    too_many_attempts: Template("Il y a eu trop de tentatives infructueuses. Veuillez patienter {}, puis réessayer."),
    page_expired: "Cette page n’était plus à jour\u{202f}; la connexion n’a donc pas eu lieu. Veuillez réessayer.",
    username_missing: "Saisissez votre nom d’utilisateur.",
    password_missing: "Saisissez votre mot de passe.",
    choose_account_title: "Choisir un compte",
    signed_in_here_as: Template("Vous êtes connecté ici en tant que {}."),
    continue_as: Template("Continuer en tant que {}"),
    use_another_account: "Utiliser un autre compte",

    consent_title: "Autoriser l’accès\u{202f}?",
    client_asks_for_access: Template("{} demande un accès"),
    signed_in_as: Template("Vous êtes connecté en tant que {}."),
    not_you: "Ce n’est pas vous\u{202f}?",
    scopes_legend: "Accès demandés",
    scope_required: "Toujours inclus",
    scope_required_hint: "L’application ne peut pas fonctionner sans cet accès.",
    scope_emphasized: "À noter",
    claims_heading: "Elle demande aussi ces informations vous concernant",
    remember: "Mémoriser ma décision",
    remember_hint: "La question ne vous sera posée à nouveau que si l’application demande davantage.",
    consent_hint: Template(
        "N’autorisez cet accès que si vous faites confiance à {}. Votre mot de passe n’est pas communiqué.",
    ),
    allow: "Autoriser",
    deny: "Ne pas autoriser",
    session_changed: "La connexion dans ce navigateur a changé pendant que cette page était ouverte\u{202f}; rien n’a donc été \
                      fait. Veuillez vérifier à nouveau.",
    standard_scopes: [
        ScopeText {
            scope: "openid",
            name: "Vous reconnaître",
            description: "Un identifiant qui représente votre compte.",
        },
        ScopeText {
            scope: "profile",
            name: "Voir votre profil",
            description: "Votre nom et, si vous les avez renseignées, des informations telles que la photo, la date de naissance \
                          et la langue.",
        },
        ScopeText {
            scope: "email",
            name: "Voir votre adresse e-mail",
            description: "L’adresse, et si elle est vérifiée.",
        },
        ScopeText {
            scope: "address",
            name: "Voir votre adresse postale",
            description: "L’adresse enregistrée dans votre compte.",
        },
        ScopeText {
            scope: "phone",
            name: "Voir votre numéro de téléphone",
            description: "Le numéro, et s’il est vérifié.",
        },
        ScopeText {
            scope: "offline_access",
            name: "Conserver l’accès en votre absence",
            description: "L’application peut utiliser ce que vous autorisez ici même lorsque vous ne vous en servez pas, jusqu’à \
                          ce que vous le retiriez.",
        },
    ],
    standard_claims: [
        ("name", "Nom complet"),
        ("given_name", "Prénom"),
        ("family_name", "Nom de famille"),
        ("middle_name", "Deuxième prénom"),
        ("nickname", "Surnom"),
        ("preferred_username", "Nom d’utilisateur préféré"),
        ("profile", "Page de profil"),
        ("picture", "Photo"),
        ("website", "Site web"),
        ("email", "Adresse e-mail"),
        ("email_verified", "Si votre adresse e-mail est vérifiée"),
        ("gender", "Genre"),
        ("birthdate", "Date de naissance"),
        ("zoneinfo", "Fuseau horaire"),
        ("locale", "Langue et région"),
        ("phone_number", "Numéro de téléphone"),
        ("phone_number_verified", "Si votre numéro de téléphone est vérifié"),
        ("address", "Adresse postale"),
        ("updated_at", "Date de la dernière modification de vos informations"),
    ],

    sign_out_title: "Se déconnecter\u{202f}?",
    client_asks_to_sign_out: Template("{} souhaite vous déconnecter."),
    sign_out_hint: "La déconnexion met fin à votre session ici et dans les applications que vous utilisez avec elle dans ce \
                    navigateur.",
    sign_out: "Se déconnecter",
    stay_signed_in: "Rester connecté",
    signed_out_title: "Déconnexion effectuée",
    signed_out_hint: "Si d’autres personnes utilisent cet appareil, fermez aussi toutes les fenêtres du navigateur.",
    back_to_client: Template("Retour à {}"),

    bad_request: "Cette demande ne peut pas aboutir",
    bad_request_advice: "Retournez à l’application et recommencez. Si cette page réapparaît, les développeurs de l’application \
                         doivent corriger le lien ou le formulaire qui vous a amené ici.",
    forbidden: "Cette action n’était pas autorisée",
    forbidden_advice: "Le formulaire ne venait pas de notre page, ou la page n’était plus à jour. Retournez à l’application et \
                       recommencez.",
    not_found: "Il n’y a pas de page ici",
    not_found_advice: "Vérifiez l’adresse, ou partez de l’application que vous souhaitez utiliser.",
    method_not_allowed: "Cette page ne peut pas être utilisée ainsi",
    method_not_allowed_advice: "Recommencez à partir de l’application que vous souhaitez utiliser.",
    too_large: "Trop de données ont été envoyées à la fois",
    too_large_advice: "Revenez en arrière et recommencez. Si cette page réapparaît, l’application envoie plus que ce que nous \
                       acceptons.",
    too_many_requests: "Trop de tentatives",
    too_many_requests_advice: Template("Pour protéger votre compte, veuillez patienter {}, puis réessayer."),
    internal: "Une erreur s’est produite de notre côté",
    internal_advice: "Vous n’y êtes pour rien. Veuillez réessayer dans un instant.",
    unavailable: "Nous ne pouvons pas répondre pour le moment",
    unavailable_advice: "Cela ne devrait pas durer. Veuillez patienter un instant, puis réessayer.",
    support_hint: "Si vous demandez de l’aide, veuillez transmettre ces informations\u{a0}:",
    reference: "Référence",
    reason_code: "Motif",
    for_developers: "Pour les développeurs",
    to_start_page: "Vers la page d’accueil",

    form_post_title: "Un instant",
    form_post_hint: "Vous retournez à l’application. Si rien ne se passe, choisissez «\u{a0}Continuer\u{a0}».",
    form_post_continue: "Continuer",

    home_title: "Service de connexion",
    home_hint: Template("Bienvenue sur {}. Ce service vous connecte à vos applications."),
    home_advice: "Il n’y a rien à faire ici\u{a0}: ouvrez l’application que vous souhaitez utiliser et choisissez de vous y \
                  connecter.",
};

fn minutes(count: u32) -> String {
    match count {
        0 | 1 => format!("{count} minute"),
        _ => format!("{count} minutes"),
    }
}
