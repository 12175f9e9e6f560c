//! Spanish, in the polite form.

use crate::pages::language::Language;
use crate::pages::texts::{ScopeText, Template, Texts};

/// The Spanish table.
pub const SPANISH: Texts = Texts {
    language: Language::Spanish,

    error_in_title: Template("Error: {}"),
    about_this_service: "Acerca de este servicio",
    privacy_policy: "Política de privacidad",
    terms_of_service: "Condiciones del servicio",
    website: "Sitio web",
    about_client: Template("Acerca de {}"),
    opens_in_new_tab: "(se abre en una pestaña nueva)",
    there_is_a_problem: "Se ha producido un problema",
    cancel: "Cancelar",
    minutes,

    sign_in_title: "Iniciar sesión",
    to_continue_to: Template("para continuar a {}"),
    with_account_of_tenant: Template("con su cuenta de {}"),
    username: "Nombre de usuario",
    password: "Contraseña",
    sign_in: "Iniciar sesión",
    wrong_credentials: "El nombre de usuario o la contraseña no son correctos. Compruebe ambos e inténtelo de nuevo.",
    too_many_attempts: Template("Ha habido demasiados intentos fallidos. Espere {} e inténtelo de nuevo."),
    page_expired: "Esta página ya no estaba actualizada, por lo que no se ha iniciado la sesión. Inténtelo de nuevo.",
    username_missing: "Escriba su nombre de usuario.",
    password_missing: "Escriba su contraseña.",
    choose_account_title: "Elija una cuenta",
    signed_in_here_as: Template("Ha iniciado sesión aquí como {}."),
    continue_as: Template("Continuar como {}"),
    use_another_account: "Usar otra cuenta",

    consent_title: "¿Permitir el acceso?",
    client_asks_for_access: Template("{} solicita acceso"),
    signed_in_as: Template("Ha iniciado sesión como {}."),
    not_you: "¿No es usted?",
    scopes_legend: "Acceso solicitado",
    scope_required: "Siempre incluido",
    scope_required_hint: "La aplicación no puede funcionar sin esto.",
    scope_emphasized: "Tenga en cuenta",
    claims_heading: "También solicita estos datos sobre usted",
    remember: "Recordar mi decisión",
    remember_hint: "Solo se le volverá a preguntar cuando la aplicación solicite algo más.",
    consent_hint: Template("Permita el acceso solo si confía en {}. Su contraseña no se comparte."),
    allow: "Permitir",
    deny: "No permitir",
    session_changed: "La sesión de este navegador cambió mientras esta página estaba abierta, por lo que no se ha hecho nada. \
                      Compruébelo de nuevo.",
    standard_scopes: [
        ScopeText { scope: "openid", name: "Reconocerle", description: "Un identificador que representa su cuenta." },
        ScopeText {
            scope: "profile",
            name: "Ver su perfil",
            description: "Su nombre y, si los ha indicado, datos como la foto, la fecha de nacimiento y el idioma.",
        },
        ScopeText {
            scope: "email",
            name: "Ver su correo electrónico",
            description: "La dirección, y si está verificada.",
        },
        ScopeText {
            scope: "address",
            name: "Ver su dirección postal",
            description: "La dirección que figura en su cuenta.",
        },
        ScopeText {
            scope: "phone",
            name: "Ver su número de teléfono",
            description: "El número, y si está verificado.",
        },
        ScopeText {
            scope: "offline_access",
            name: "Mantener el acceso en su ausencia",
            description: "La aplicación puede usar lo que permita aquí incluso cuando usted no la esté utilizando, hasta que lo \
                          retire.",
        },
    ],
    standard_claims: [
        ("name", "Nombre completo"),
        ("given_name", "Nombre"),
        ("family_name", "Apellidos"),
        ("middle_name", "Segundo nombre"),
        ("nickname", "Apodo"),
        ("preferred_username", "Nombre de usuario preferido"),
        ("profile", "Página de perfil"),
        ("picture", "Foto"),
        ("website", "Sitio web"),
        ("email", "Correo electrónico"),
        ("email_verified", "Si su correo electrónico está verificado"),
        ("gender", "Género"),
        ("birthdate", "Fecha de nacimiento"),
        ("zoneinfo", "Zona horaria"),
        ("locale", "Idioma y región"),
        ("phone_number", "Número de teléfono"),
        ("phone_number_verified", "Si su número de teléfono está verificado"),
        ("address", "Dirección postal"),
        ("updated_at", "Cuándo cambiaron sus datos por última vez"),
    ],

    sign_out_title: "¿Cerrar sesión?",
    client_asks_to_sign_out: Template("{} desea cerrar su sesión."),
    sign_out_hint: "Se cerrará su sesión aquí y en las aplicaciones que utiliza con ella en este navegador.",
    sign_out: "Cerrar sesión",
    stay_signed_in: "Mantener la sesión iniciada",
    signed_out_title: "Se ha cerrado la sesión",
    signed_out_hint: "Si otras personas usan este dispositivo, cierre también todas las ventanas del navegador.",
    back_to_client: Template("Volver a {}"),

    bad_request: "No se puede completar esta solicitud",
    bad_request_advice: "Vuelva a la aplicación y empiece de nuevo. Si esta página aparece otra vez, los desarrolladores de la \
                         aplicación deben corregir el enlace o el formulario que le ha traído hasta aquí.",
    forbidden: "Esta acción no estaba permitida",
    forbidden_advice: "El formulario no procedía de nuestra página o la página no estaba actualizada. Vuelva a la aplicación y \
                       empiece de nuevo.",
    not_found: "Aquí no hay ninguna página",
    not_found_advice: "Compruebe la dirección o empiece desde la aplicación que desea usar.",
    method_not_allowed: "Esta página no se puede usar de esta forma",
    method_not_allowed_advice: "Empiece de nuevo desde la aplicación que desea usar.",
    too_large: "Se han enviado demasiados datos a la vez",
    too_large_advice: "Vuelva atrás y empiece de nuevo. Si esta página aparece otra vez, la aplicación envía más de lo que \
                       aceptamos.",
    too_many_requests: "Demasiados intentos",
    too_many_requests_advice: Template("Para proteger su cuenta, espere {} e inténtelo de nuevo."),
    internal: "Se ha producido un error por nuestra parte",
    internal_advice: "No es culpa suya. Inténtelo de nuevo dentro de un momento.",
    unavailable: "En este momento no podemos responder",
    unavailable_advice: "Debería resolverse pronto. Espere un momento e inténtelo de nuevo.",
    support_hint: "Si solicita ayuda, facilite estos datos:",
    reference: "Referencia",
    reason_code: "Motivo",
    for_developers: "Para desarrolladores",
    to_start_page: "Ir a la página de inicio",

    form_post_title: "Un momento",
    form_post_hint: "Está volviendo a la aplicación. Si no ocurre nada, elija «Continuar».",
    form_post_continue: "Continuar",

    home_title: "Servicio de inicio de sesión",
    home_hint: Template("Este es {}. Aquí inicia sesión en sus aplicaciones."),
    home_advice: "Aquí no hay nada que hacer: abra la aplicación que desea usar y elija iniciar sesión en ella.",
};

fn minutes(count: u32) -> String {
    match count {
        1 => String::from("1 minuto"),
        _ => format!("{count} minutos"),
    }
}
