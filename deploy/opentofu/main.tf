# What is registered at Gatepost, by OpenTofu or Terraform, over docs/operate/registration-over-http.md. Each change of
# `registration.json` beside this file is applied; `tofu plan` says whether there is one, and `./registration plan` which.
# It needs bash, curl and jq where it runs. No secret comes into the state.

variable "issuer" {
  type        = string
  description = "Gatepost's base URL, as https://login.example.com"
}

variable "client_id" {
  type        = string
  description = "A client with registration.write"
  default     = "pipeline"
}

variable "client_secret" {
  type        = string
  description = "Its secret: TF_VAR_client_secret"
  sensitive   = true
}

resource "terraform_data" "registration" {
  triggers_replace = [var.issuer, filesha256("${path.module}/registration.json")]

  provisioner "local-exec" {
    command = "${path.module}/registration apply"
    environment = {
      ISSUER        = var.issuer
      CLIENT_ID     = var.client_id
      CLIENT_SECRET = var.client_secret
    }
  }
}
