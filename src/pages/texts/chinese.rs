//! Simplified Chinese, in the polite form.

use crate::pages::language::Language;
use crate::pages::texts::{ScopeText, Template, Texts};

/// The table of Simplified Chinese.
pub const SIMPLIFIED_CHINESE: Texts = Texts {
    language: Language::SimplifiedChinese,

    error_in_title: Template("错误：{}"),
    about_this_service: "关于此服务",
    privacy_policy: "隐私政策",
    terms_of_service: "服务条款",
    website: "网站",
    about_client: Template("关于 {}"),
    opens_in_new_tab: "（在新标签页中打开）",
    there_is_a_problem: "出现问题",
    cancel: "取消",
    minutes,

    sign_in_title: "登录",
    to_continue_to: Template("以继续使用 {}"),
    with_account_of_tenant: Template("使用您的 {} 账号"),
    username: "用户名",
    password: "密码",
    sign_in: "登录",
    wrong_credentials: "用户名或密码不正确。请检查后重试。",
    too_many_attempts: Template("失败的尝试次数过多。请等待 {}后重试。"),
    page_expired: "此页面已过期，因此未能登录。请重试。",
    username_missing: "请输入您的用户名。",
    password_missing: "请输入您的密码。",
    choose_account_title: "选择账号",
    signed_in_here_as: Template("您已在此以 {} 的身份登录。"),
    continue_as: Template("以 {} 的身份继续"),
    use_another_account: "使用其他账号",

    consent_title: "允许访问？",
    client_asks_for_access: Template("{} 请求访问权限"),
    signed_in_as: Template("您已以 {} 的身份登录。"),
    not_you: "不是您本人？",
    scopes_legend: "请求的访问权限",
    scope_required: "始终包含",
    scope_required_hint: "没有此权限，该应用无法运行。",
    scope_emphasized: "请注意",
    claims_heading: "该应用还请求获取您的以下信息",
    remember: "记住我的决定",
    remember_hint: "只有在该应用请求更多权限时，才会再次询问您。",
    consent_hint: Template("请仅在您信任 {} 时允许。您的密码不会被共享。"),
    allow: "允许",
    deny: "不允许",
    session_changed: "此页面打开期间，该浏览器中的登录状态发生了变化，因此未执行任何操作。请重新确认。",
    standard_scopes: [
        ScopeText { scope: "openid", name: "识别您的身份", description: "代表您的账号的标识符。" },
        ScopeText {
            scope: "profile",
            name: "查看您的个人资料",
            description: "您的姓名，以及您填写过的头像、生日和语言等信息。",
        },
        ScopeText {
            scope: "email", name: "查看您的电子邮件地址", description: "电子邮件地址，以及该地址是否已验证。"
        },
        ScopeText { scope: "address", name: "查看您的通讯地址", description: "您账号中的地址。" },
        ScopeText {
            scope: "phone", name: "查看您的电话号码", description: "电话号码，以及该号码是否已验证。"
        },
        ScopeText {
            scope: "offline_access",
            name: "在您离开时保持访问权限",
            description: "即使您未在使用该应用，它也可以使用您在此允许的权限，直到您撤销为止。",
        },
    ],
    standard_claims: [
        ("name", "姓名"),
        ("given_name", "名字"),
        ("family_name", "姓氏"),
        ("middle_name", "中间名"),
        ("nickname", "昵称"),
        ("preferred_username", "首选用户名"),
        ("profile", "个人资料页面"),
        ("picture", "头像"),
        ("website", "网站"),
        ("email", "电子邮件地址"),
        ("email_verified", "您的电子邮件地址是否已验证"),
        ("gender", "性别"),
        ("birthdate", "出生日期"),
        ("zoneinfo", "时区"),
        ("locale", "语言和地区"),
        ("phone_number", "电话号码"),
        ("phone_number_verified", "您的电话号码是否已验证"),
        ("address", "通讯地址"),
        ("updated_at", "您的信息上次更改的时间"),
    ],

    sign_out_title: "退出登录？",
    client_asks_to_sign_out: Template("{} 希望让您退出登录。"),
    sign_out_hint: "退出后，您在此处以及在该浏览器中通过此登录使用的应用中的会话都将结束。",
    sign_out: "退出登录",
    stay_signed_in: "保持登录状态",
    signed_out_title: "您已退出登录",
    signed_out_hint: "如果还有其他人使用此设备，请同时关闭所有浏览器窗口。",
    back_to_client: Template("返回 {}"),

    bad_request: "无法完成此请求",
    bad_request_advice: "请返回应用并重新开始。如果此页面再次出现，则需要由该应用的开发者修正将您带到此处的链接或表单。",
    forbidden: "此操作不被允许",
    forbidden_advice: "该表单并非来自我们的页面，或者页面已过期。请返回应用并重新开始。",
    not_found: "此处没有页面",
    not_found_advice: "请检查网址，或从您要使用的应用开始。",
    method_not_allowed: "不能以这种方式使用此页面",
    method_not_allowed_advice: "请从您要使用的应用重新开始。",
    too_large: "一次发送的数据过多",
    too_large_advice: "请返回并重新开始。如果此页面再次出现，说明该应用发送的数据超出了我们接受的范围。",
    too_many_requests: "尝试次数过多",
    too_many_requests_advice: Template("为保护您的账号，请等待 {}后重试。"),
    internal: "我们这边出了点问题",
    internal_advice: "这不是您的问题。请稍后重试。",
    unavailable: "我们暂时无法响应",
    unavailable_advice: "很快就会恢复。请稍候片刻再重试。",
    support_hint: "寻求帮助时，请提供以下信息：",
    reference: "参考编号",
    reason_code: "原因",
    for_developers: "供开发者参考",
    to_start_page: "前往首页",

    form_post_title: "请稍候",
    form_post_hint: "正在返回应用。如果页面没有变化，请选择“继续”。",
    form_post_continue: "继续",

    home_title: "登录服务",
    home_hint: Template("这里是 {}，它帮助您登录各个应用。"),
    home_advice: "您无需在此执行任何操作：请打开您要使用的应用，并在那里选择登录。",
};

fn minutes(count: u32) -> String {
    format!("{count} 分钟")
}
