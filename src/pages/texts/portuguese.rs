//! Portuguese, in Brazilian spelling, which readers elsewhere know as well.

use crate::pages::language::Language;
use crate::pages::texts::{ScopeText, Template, Texts};

/// The Portuguese table.
pub const PORTUGUESE: Texts = Texts {
    language: Language::Portuguese,

    error_in_title: Template("Erro: {}"),
    about_this_service: "Sobre este serviço",
    privacy_policy: "Política de privacidade",
    terms_of_service: "Termos de serviço",
    website: "Site",
    about_client: Template("Sobre {}"),
    opens_in_new_tab: "(abre em uma nova guia)",
    there_is_a_problem: "Ocorreu um problema",
    cancel: "Cancelar",
    minutes,

    sign_in_title: "Fazer login",
    to_continue_to: Template("para continuar em {}"),
    with_account_of_tenant: Template("com sua conta em {}"),
    username: "Nome de usuário",
    password: "Senha",
    sign_in: "Fazer login",
    wrong_credentials: "O nome de usuário ou a senha não está correto. Verifique os dois e tente novamente.",
    too_many_attempts: Template("Houve muitas tentativas sem sucesso. Aguarde {} e tente novamente."),
    page_expired: "Esta página não estava mais atualizada, por isso o login não foi feito. Tente novamente.",
    username_missing: "Digite seu nome de usuário.",
    password_missing: "Digite sua senha.",
    choose_account_title: "Escolha uma conta",
    signed_in_here_as: Template("Você está conectado aqui como {}."),
    continue_as: Template("Continuar como {}"),
    use_another_account: "Usar outra conta",

    consent_title: "Permitir acesso?",
    client_asks_for_access: Template("{} solicita acesso"),
    signed_in_as: Template("Você está conectado como {}."),
    not_you: "Não é você?",
    scopes_legend: "Acesso solicitado",
    scope_required: "Sempre incluído",
    scope_required_hint: "O aplicativo não funciona sem isso.",
    scope_emphasized: "Atenção",
    claims_heading: "Também solicita estes dados sobre você",
    remember: "Lembrar minha decisão",
    remember_hint: "A pergunta só voltará a aparecer quando o aplicativo solicitar mais.",
    consent_hint: Template("Permita isso somente se você confia em {}. Sua senha não é compartilhada."),
    allow: "Permitir",
    deny: "Não permitir",
    session_changed: "O login neste navegador mudou enquanto esta página estava aberta, por isso nada foi feito. Verifique \
                      novamente.",
    standard_scopes: [
        ScopeText {
            scope: "openid",
            name: "Reconhecer você",
            description: "Um identificador que representa sua conta.",
        },
        ScopeText {
            scope: "profile",
            name: "Ver seu perfil",
            description: "Seu nome e, se você os informou, dados como foto, data de nascimento e idioma.",
        },
        ScopeText {
            scope: "email",
            name: "Ver seu endereço de e-mail",
            description: "O endereço e se ele foi verificado.",
        },
        ScopeText { scope: "address", name: "Ver seu endereço postal", description: "O endereço em sua conta." },
        ScopeText {
            scope: "phone",
            name: "Ver seu número de telefone",
            description: "O número e se ele foi verificado.",
        },
        ScopeText {
            scope: "offline_access",
            name: "Manter o acesso na sua ausência",
            description: "O aplicativo pode usar o que você permite aqui mesmo quando você não o está usando, até que você \
                          retire a permissão.",
        },
    ],
    standard_claims: [
        ("name", "Nome completo"),
        ("given_name", "Nome"),
        ("family_name", "Sobrenome"),
        ("middle_name", "Nome do meio"),
        ("nickname", "Apelido"),
        ("preferred_username", "Nome de usuário preferido"),
        ("profile", "Página de perfil"),
        ("picture", "Foto"),
        ("website", "Site"),
        ("email", "Endereço de e-mail"),
        ("email_verified", "Se seu endereço de e-mail foi verificado"),
        ("gender", "Gênero"),
        ("birthdate", "Data de nascimento"),
        ("zoneinfo", "Fuso horário"),
        ("locale", "Idioma e região"),
        ("phone_number", "Número de telefone"),
        ("phone_number_verified", "Se seu número de telefone foi verificado"),
        ("address", "Endereço postal"),
        ("updated_at", "Quando seus dados mudaram pela última vez"),
    ],

    sign_out_title: "Sair?",
    client_asks_to_sign_out: Template("{} quer encerrar sua sessão."),
    sign_out_hint: "Sua sessão será encerrada aqui e nos aplicativos que você usa com ela neste navegador.",
    sign_out: "Sair",
    stay_signed_in: "Continuar conectado",
    signed_out_title: "Você saiu da conta",
    signed_out_hint: "Se outras pessoas usam este dispositivo, feche também todas as janelas do navegador.",
    back_to_client: Template("Voltar para {}"),

    bad_request: "Não é possível concluir esta solicitação",
    bad_request_advice: "Volte ao aplicativo e comece de novo. Se esta página aparecer outra vez, os desenvolvedores do \
                         aplicativo precisam corrigir o link ou o formulário que trouxe você até aqui.",
    forbidden: "Isso não era permitido",
    forbidden_advice: "O formulário não veio da nossa página ou a página estava desatualizada. Volte ao aplicativo e comece de \
                       novo.",
    not_found: "Não há nenhuma página aqui",
    not_found_advice: "Verifique o endereço ou comece pelo aplicativo que você deseja usar.",
    method_not_allowed: "Esta página não pode ser usada desta forma",
    method_not_allowed_advice: "Comece de novo pelo aplicativo que você deseja usar.",
    too_large: "Foram enviados dados demais de uma só vez",
    too_large_advice: "Volte e comece de novo. Se esta página aparecer outra vez, o aplicativo envia mais do que aceitamos.",
    too_many_requests: "Tentativas demais",
    too_many_requests_advice: Template("Para proteger sua conta, aguarde {} e tente novamente."),
    internal: "Algo deu errado do nosso lado",
    internal_advice: "A culpa não é sua. Tente novamente em instantes.",
    unavailable: "Não podemos responder agora",
    unavailable_advice: "Isso deve passar logo. Aguarde um momento e tente novamente.",
    support_hint: "Ao pedir ajuda, informe estes dados:",
    reference: "Referência",
    reason_code: "Motivo",
    for_developers: "Para desenvolvedores",
    to_start_page: "Para a página inicial",

    form_post_title: "Um momento",
    form_post_hint: "Você está voltando ao aplicativo. Se nada acontecer, escolha “Continuar”.",
    form_post_continue: "Continuar",

    home_title: "Serviço de login",
    home_hint: Template("Este é o serviço {}. Ele conecta você aos seus aplicativos."),
    home_advice: "Não há nada a fazer aqui: abra o aplicativo que você deseja usar e faça login por ele.",
};

fn minutes(count: u32) -> String {
    match count {
        1 => String::from("1 minuto"),
        _ => format!("{count} minutos"),
    }
}
