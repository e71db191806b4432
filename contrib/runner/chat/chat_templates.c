/* Templates for models that have none, by name: the forms of well-known families. */
#include "contrib/runner/chat/conversation.h"

#include <string.h>

#define MESSAGES(text) "{% for m in messages %}" text "{% endfor %}"
#define ANSWER(text)   "{% if add_generation_prompt %}" text "{% endif %}"
#define IF(role)       "{% if m.role == '" role "' %}"
#define ELIF(role)     "{% elif m.role == '" role "' %}"

const struct run_chat_template run_chat_templates[] = {
    {"alpaca", MESSAGES(IF("user") "{{ '### Instruction:\\n' + m.content + '\\n\\n' }}" ELIF(
                   "assistant") "{{ '### Response:\\n' + m.content + eos_token + '\\n\\n' }}"
                                "{% else %}{{ m.content + '\\n\\n' }}{% endif %}")
                   ANSWER("{{ '### Response:\\n' }}")},
    {"chatml", MESSAGES("{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}")
                   ANSWER("{{ '<|im_start|>assistant\\n' }}")},
    {"gemma",
     "{{ bos_token }}{% set ns = namespace(system='') %}" MESSAGES(
         IF("system") "{% set ns.system = m.content + '\\n\\n' %}{% else %}{{ '<start_of_turn>' + "
                      "('model' if m.role == 'assistant' else 'user') + '\\n' + (ns.system + "
                      "m.content)|trim + '<end_of_turn>\\n' }}{% set ns.system = '' %}{% endif %}")
         ANSWER("{{ '<start_of_turn>model\\n' }}")},
    {"llama2", "{{ bos_token }}{% set ns = namespace(system='') %}" MESSAGES(
                   IF("system") "{% set ns.system = '<<SYS>>\\n' + m.content + '\\n<</SYS>>\\n\\n' "
                                "%}" ELIF("user") "{{ '[INST] ' + ns.system + m.content + ' "
                                                  "[/INST]' }}{% set ns.system = '' %}"
                                                  "{% else %}{{ ' ' + m.content + ' ' + eos_token "
                                                  "+ bos_token }}{% endif %}")},
    {"llama3",
     "{{ bos_token }}" MESSAGES("{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n' + "
                                "m.content|trim + '<|eot_id|>' }}")
         ANSWER("{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}")},
    {"mistral",
     "{{ bos_token }}{% set ns = namespace(system='') %}" MESSAGES(
         IF("system") "{% set ns.system = m.content + '\\n\\n' %}" ELIF(
             "user") "{{ '[INST] ' + ns.system + m.content + ' [/INST]' }}{% set ns.system = '' %}"
                     "{% else %}{{ ' ' + m.content + eos_token }}{% endif %}")},
    {"phi3", MESSAGES("{{ '<|' + m.role + '|>\\n' + m.content + '<|end|>\\n' }}")
                 ANSWER("{{ '<|assistant|>\\n' }}")},
    {"vicuna", MESSAGES(IF("user") "{{ 'USER: ' + m.content + ' ' }}" ELIF(
                   "assistant") "{{ 'ASSISTANT: ' + m.content + eos_token }}"
                                "{% else %}{{ m.content + ' ' }}{% endif %}") ANSWER("ASSISTANT:")},
    {"zephyr", MESSAGES("{{ '<|' + m.role + '|>\\n' + m.content + eos_token + '\\n' }}")
                   ANSWER("{{ '<|assistant|>\\n' }}")},
    {NULL, NULL},
};

const char *run_chat_template_find(const char *name)
{
    const struct run_chat_template *row = run_chat_templates;

    while (row->name && strcmp(row->name, name) != 0)
        row++;
    return row->jinja;
}
