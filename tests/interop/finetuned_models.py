"""Models of transformers with random weights and the head of a task, saved as they are published."""

import json
from importlib import import_module
from pathlib import Path

from tokenizers.processors import TemplateProcessing

from tests.interop.decoder_models import byte_bpe, unigram
from tests.interop.elsewhere import randomise, write_byte_bpe, write_unigram, write_wordpiece

BERT = {
    "hidden_size": 35,
    "num_hidden_layers": 3,
    "num_attention_heads": 5,
    "intermediate_size": 51,
    "max_position_embeddings": 77,
}
ROBERTA = BERT | {"type_vocab_size": 1, "layer_norm_eps": 1e-5, "pad_token_id": 1}
ALBERT = BERT | {"num_hidden_layers": 4, "num_hidden_groups": 2, "embedding_size": 21}
DISTILBERT = {"dim": 35, "n_layers": 3, "n_heads": 5, "hidden_dim": 51, "max_position_embeddings": 77}
XLNET = {"d_model": 30, "n_layer": 3, "n_head": 5, "d_inner": 51, "mem_len": None}
GPT2 = {"n_positions": 77, "n_embd": 35, "n_layer": 3, "n_head": 5, "bos_token_id": 2, "eos_token_id": 2}
BART = {"d_model": 35, "encoder_layers": 2, "decoder_layers": 2, "max_position_embeddings": 77} | {
    f"{side}_{name}": value
    for side in ("encoder", "decoder")
    for name, value in (("attention_heads", 5), ("ffn_dim", 33))
}
T5 = {"d_model": 30, "d_kv": 6, "d_ff": 51, "num_layers": 2, "num_heads": 5}
MODERNBERT = {
    "hidden_size": 40,
    "num_hidden_layers": 5,
    "num_attention_heads": 5,
    "intermediate_size": 51,
    "local_attention": 6,
    **dict.fromkeys(("bos_token_id", "cls_token_id"), 0),
    **dict.fromkeys(("eos_token_id", "sep_token_id"), 2),
    "pad_token_id": 1,
}
NAMES = {"id2label": {0: "bad", 1: "good", 2: "odd"}, "label2id": {"bad": 0, "good": 1, "odd": 2}}
TAGS = {"id2label": dict(enumerate(["O", "B-X", "I-X", "B-Y"]))}


def write_xlnet(folder):
    inner = unigram(["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>"], 150, [])
    inner.save(str(folder / "tokenizer.json"))
    return inner.get_vocab_size()


def write_framed_bpe(folder):
    """A decoder's, which puts a token before a text as rows here have it."""
    inner = byte_bpe(["<pad>", "<unk>", "</s>"], 331)
    inner.post_processor = TemplateProcessing("</s> $A", "</s> $A </s> $B", [("</s>", 2)])
    inner.save(str(folder / "tokenizer.json"))
    return inner.get_vocab_size()


CARRIED = {
    "bert classes": ("BertForSequenceClassification", BERT | NAMES, write_wordpiece, "classification"),
    "bert numbers": ("BertForSequenceClassification", BERT | {"num_labels": 1}, write_wordpiece, "regression"),
    "bert labels": (
        "BertForSequenceClassification",
        BERT | NAMES | {"problem_type": "multi_label_classification"},
        write_wordpiece,
        "multilabel",
    ),
    "bert tags": ("BertForTokenClassification", BERT | TAGS, write_wordpiece, "tagging"),
    "bert answers": ("BertForQuestionAnswering", BERT, write_wordpiece, "question_answering"),
    "bert choices": ("BertForMultipleChoice", BERT, write_wordpiece, "choice"),
    "roberta classes": ("RobertaForSequenceClassification", ROBERTA | NAMES, write_byte_bpe, "classification"),
    "roberta tags": ("RobertaForTokenClassification", ROBERTA | TAGS, write_byte_bpe, "tagging"),
    "albert classes": ("AlbertForSequenceClassification", ALBERT | NAMES, write_unigram, "classification"),
    "albert choices": ("AlbertForMultipleChoice", ALBERT, write_unigram, "choice"),
    "albert answers": ("AlbertForQuestionAnswering", ALBERT, write_unigram, "question_answering"),
    "distilbert tags": ("DistilBertForTokenClassification", DISTILBERT | TAGS, write_wordpiece, "tagging"),
    "distilbert answers": ("DistilBertForQuestionAnswering", DISTILBERT, write_wordpiece, "question_answering"),
    "electra tags": (
        "ElectraForTokenClassification",
        BERT | TAGS | {"embedding_size": 21},
        write_wordpiece,
        "tagging",
    ),
    "distilbert classes": (
        "DistilBertForSequenceClassification",
        DISTILBERT | NAMES,
        write_wordpiece,
        "classification",
    ),
    "distilbert choices": ("DistilBertForMultipleChoice", DISTILBERT, write_wordpiece, "choice"),
    "electra classes": (
        "ElectraForSequenceClassification",
        BERT | NAMES | {"embedding_size": 21},
        write_wordpiece,
        "classification",
    ),
    "electra choices": ("ElectraForMultipleChoice", BERT | {"embedding_size": 21}, write_wordpiece, "choice"),
    "roberta answers": ("RobertaForQuestionAnswering", ROBERTA, write_byte_bpe, "question_answering"),
    "roberta choices": ("RobertaForMultipleChoice", ROBERTA, write_byte_bpe, "choice"),
    "xlnet classes": ("XLNetForSequenceClassification", XLNET | NAMES, write_xlnet, "classification"),
    "xlnet choices": ("XLNetForMultipleChoice", XLNET, write_xlnet, "choice"),
    "xlnet tags": ("XLNetForTokenClassification", XLNET | TAGS, write_xlnet, "tagging"),
    "xlnet answers": ("XLNetForQuestionAnsweringSimple", XLNET, write_xlnet, "question_answering"),
    "gpt2 classes": (
        "GPT2ForSequenceClassification",
        GPT2 | NAMES | {"pad_token_id": 0},
        write_framed_bpe,
        "classification",
    ),
    "gpt2 tags": ("GPT2ForTokenClassification", GPT2 | TAGS | {"pad_token_id": 0}, write_framed_bpe, "tagging"),
    "modernbert classes": ("ModernBertForSequenceClassification", MODERNBERT | NAMES, write_byte_bpe, "classification"),
    "modernbert numbers": (
        "ModernBertForSequenceClassification",
        MODERNBERT | {"num_labels": 1, "classifier_pooling": "mean", "classifier_bias": True, "norm_bias": True},
        write_byte_bpe,
        "regression",
    ),
    "modernbert tags": (
        "ModernBertForTokenClassification",
        MODERNBERT | TAGS | {"classifier_activation": "relu"},
        write_byte_bpe,
        "tagging",
    ),
    "modernbert answers": ("ModernBertForQuestionAnswering", MODERNBERT, write_byte_bpe, "question_answering"),
    "modernbert choices": ("ModernBertForMultipleChoice", MODERNBERT, write_byte_bpe, "choice"),
}
LEFT_OUT = {
    "electra choices of means": (
        "ElectraForMultipleChoice",
        BERT | {"embedding_size": 21, "summary_type": "mean"},
        write_wordpiece,
        "summary_type is 'mean' there, and 'first' alone",
    ),
    "xlnet of means": (
        "XLNetForSequenceClassification",
        XLNET | NAMES | {"summary_type": "mean"},
        write_xlnet,
        "summary_type is 'mean' there, and 'last' alone",
    ),
    "xlnet answers of several ends": (
        "XLNetForQuestionAnswering",
        XLNET | {"start_n_top": 3, "end_n_top": 3},
        write_xlnet,
        "XLNetForQuestionAnsweringSimple has a counterpart here",
    ),
    "bart classes": ("BartForSequenceClassification", BART | NAMES, write_byte_bpe, "reads the text one token later"),
    "t5 answers": ("T5ForQuestionAnswering", T5, write_unigram, "it has no class for QuestionAnswering"),
    "gpt2 without a beginning": (
        "GPT2ForSequenceClassification",
        GPT2 | NAMES | {"pad_token_id": 1},
        write_byte_bpe,
        "no special token before a text",
    ),
    "several numbers": (
        "BertForSequenceClassification",
        BERT | NAMES | {"problem_type": "regression"},
        write_wordpiece,
        "it gives 3 numbers, and a regression here one",
    ),
}


ANOTHER_T5 = {
    "t5 classes": ("T5ForSequenceClassification", T5 | NAMES, write_unigram, ""),
    "t5 tags": ("T5ForTokenClassification", T5 | TAGS, write_unigram, ""),
}


def saved(folder: Path, name: str):
    """A random model with a head, with its tokenizer in a folder.

    It is as transformers 4 wrote it, whose tokenizers of ALBERT and XLNet gave segments.
    """
    architecture, settings, tokenizer, _ = (CARRIED | LEFT_OUT | ANOTHER_T5)[name]
    folder.mkdir(parents=True)
    made = getattr(import_module("transformers"), architecture)
    rows = tokenizer(folder)
    model = made(made.config_class(vocab_size=rows, **settings))
    randomise(model.eval())
    model.save_pretrained(folder)
    written_by(folder, "4.57.1")
    return model


def written_by(folder: Path, version: str) -> None:
    """Change the version of transformers by which a model was written."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"transformers_version": version}), encoding="utf-8")
